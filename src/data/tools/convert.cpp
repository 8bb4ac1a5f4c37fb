// SPDX-License-Identifier: Apache-2.0
#include "data/tools/convert.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>

#include "core/error.h"
#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/text.h"
#include "data/formats/array_file.h"
#include "data/tools/convert_plan.h"

namespace welkin::data {
namespace {

namespace fs = std::filesystem;

// A folder under a temporary name, removed unless it was published.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& target) {
    std::string pattern = (target.parent_path() / cat(".", target.filename().string(), ".XXXXXX")).string();
    if (mkdtemp(pattern.data()) == nullptr) throw file_error("create a folder beside", target, errno);
    path_ = pattern;
    fs::permissions(path_, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read |
                               fs::perms::others_exec);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }
  void publish(const fs::path& target) {
    publish_folder(path_, target);
    path_.clear();
  }

 private:
  fs::path path_;
};

bool is_folder_format(OutputFormat format) {
  return format == OutputFormat::Zarr2 || format == OutputFormat::Zarr3 || format == OutputFormat::Lmdb;
}

uint64_t size_on_disk(const fs::path& path) {
  if (!fs::is_directory(path)) return fs::file_size(path);
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path)) bytes += entry.is_regular_file() ? entry.file_size() : 0;
  return bytes;
}

void write_all(const ConvertPlan& plan, const ConvertOptions& options, const fs::path& path) {
  const auto writer = make_writer(path, options.format, plan.output);
  if (writer->by_sample()) {
    write_samples(plan, options.block_bytes, *writer);
  } else {
    for (size_t i = 0; i < plan.conversions.size(); ++i) {
      write_array(plan.conversions[i], i, plan.output.arrays[i], options.block_bytes, *writer);
    }
  }
  writer->finish();
}

// The sidecar is written first: without its data it does no harm.
void write_sidecar(const ConvertPlan& plan, const ConvertOptions& options, const fs::path& to) {
  if (options.format != OutputFormat::Npy && options.format != OutputFormat::Raw) return;
  Sidecar document = sidecar_of(plan.output);
  if (options.format == OutputFormat::Raw) {
    const auto offsets = raw_offsets(plan.output);
    for (size_t i = 0; i < plan.output.arrays.size(); ++i) {
      SidecarArray& side = document.arrays[plan.output.arrays[i].name];
      side.shape = plan.output.arrays[i].shape;
      side.dtype = plan.output.arrays[i].dtype;
      side.offset = offsets[i];
    }
  }
  write_file_atomically(sidecar_path(to), sidecar_text(document));
}

void set_chunks(ConvertPlan& plan, const ConvertOptions& options, const fs::path& to, ConvertReport& report) {
  if (!is_chunked(options.format)) return;
  const bool needs_chunks = options.format != OutputFormat::Hdf5 || options.compress || options.auto_chunk;
  for (size_t i = 0; i < plan.output.arrays.size(); ++i) {
    OutputArray& array = plan.output.arrays[i];
    array.codecs = codecs_for(options, array.dtype);
    if (options.chunk && options.chunk->size() == array.shape.size()) {
      array.chunk = *options.chunk;
    } else if (options.chunk && plan.output.arrays.size() == 1) {
      throw ConfigError("data",
                        cat("chunks of another rank than the array: chunk=", extents_text(*options.chunk),
                            ", shape=", extents_text(array.shape)),
                        "Give one size per axis");
    } else if (options.auto_chunk) {
      array.chunk = probe_chunks(*plan.conversions[i].from, array, options, to, report);
    } else if (needs_chunks) {
      array.chunk = recommended_chunk(plan.conversions[i].from->facts(), array.dtype);
    }
    for (size_t d = 0; d < array.chunk.size(); ++d) array.chunk[d] = std::min(array.chunk[d], array.shape[d]);
    if (array.chunk.empty()) array.codecs.clear();
  }
}

// What would have no effect.
void refuse_unused(const ConvertOptions& options) {
  if (is_chunked(options.format)) return;
  if (options.compress)
    throw ConfigError("data", "this format is not compressed", "Drop --compress, or choose hdf5, zarr2 or zarr3");
  if (options.chunk || options.auto_chunk)
    throw ConfigError("data", "this format has no chunks", "Drop --chunk, or choose hdf5, zarr2 or zarr3");
}

void refuse_existing(const fs::path& to) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(to, error))) return;
  throw DataError("data", cat("the output exists: path=", to.string()), "Remove it, or give another name");
}

// A damaged file may claim any size. Without this check a disk would be filled in vain, for hours where it is a large one.
void check_room(const ConvertPlan& plan, const ConvertOptions& options, const ArrayFile& file, const fs::path& target) {
  constexpr double kMostCompression = 1000;
  double needed = 0;
  for (const OutputArray& array : plan.output.arrays) {
    auto bytes = static_cast<double>(dtype_bytes(array.dtype));
    for (const int64_t extent : array.shape) bytes *= static_cast<double>(extent);
    needed += bytes;
  }
  std::error_code error;
  const auto free = static_cast<double>(fs::space(target.parent_path(), error).available);
  if (error || needed <= free * (options.compress ? kMostCompression : 1)) return;
  constexpr double kGib = 1 << 30;
  throw DataError("data",
                  cat("the output has no room: path=", file.path.string(), ", GiB of values=", needed / kGib,
                      ", GiB free=", free / kGib, ", folder=", target.parent_path().string()),
                  "Check the shape that the file says its arrays have (welkin data inspect), or free space there");
}

}  // namespace

std::vector<Codec> codecs_for(const ConvertOptions& options, Dtype dtype) {
  if (!options.compress) return {};
  const size_t width = dtype_bytes(dtype);
  Codec codec{.kind = *options.compress, .width = width};
  const bool hdf5 = options.format == OutputFormat::Hdf5;
  if (codec.kind == CodecKind::Gzip) codec.level = 1;
  if (codec.kind == CodecKind::Zstd) codec.level = 3;
  if (codec.kind == CodecKind::Blosc) codec.compressor = "zstd", codec.level = 5;
  if (options.level >= 0) codec.level = options.level;
  if (hdf5 && codec.kind == CodecKind::Gzip) codec.kind = CodecKind::Zlib;
  if (hdf5 && codec.kind == CodecKind::Lz4) codec.kind = CodecKind::Lz4Blocks;
  if (hdf5 || codec.kind == CodecKind::Blosc || width == 1) return {codec};
  // Zarr 3 has no shuffle of its own: outside blosc its chunks stay as they are, so that every reader knows them.
  if (options.format == OutputFormat::Zarr3) return {codec};
  return {Codec{.kind = CodecKind::Shuffle, .width = width}, codec};
}

std::unique_ptr<ArrayWriter> make_writer(const fs::path& path, OutputFormat format, const OutputFile& output) {
  switch (format) {
    case OutputFormat::Hdf5:
      return make_hdf5_writer(path, output);
    case OutputFormat::Zarr2:
      return make_zarr_writer(path, 2, output);
    case OutputFormat::Zarr3:
      return make_zarr_writer(path, 3, output);
    case OutputFormat::Npy:
      return make_npy_writer(path, output);
    case OutputFormat::Raw:
      return make_raw_writer(path, output);
    case OutputFormat::Tar:
      return make_tar_writer(path, output);
    case OutputFormat::Lmdb:
      return make_lmdb_writer(path, output);
  }
  throw InternalError("an unknown format");
}

ConvertReport convert_arrays(const fs::path& from, const fs::path& to, const ConvertOptions& options) {
  refuse_unused(options);
  const ArrayFile file = open_array_file(from);
  refuse_existing(to);
  const fs::path target = fs::absolute(to);
  ConvertReport report;
  ConvertPlan plan = plan_conversion(file, options, report);
  check_room(plan, options, file, target);
  set_chunks(plan, options, target, report);
  plan.output.attributes["converted_from"] =
      std::vector<std::string>{cat(from.filename().string(), ", ", file.format, ", bytes=", size_on_disk(from))};
  if (!options.command.empty()) plan.output.attributes["converted_by"] = std::vector<std::string>{options.command};
  if (is_folder_format(options.format)) {
    TemporaryFolder folder(target);
    write_all(plan, options, folder.path());
    folder.publish(target);
  } else {
    write_sidecar(plan, options, target);
    write_path_atomically(target, [&](const fs::path& temporary) { write_all(plan, options, temporary); });
  }
  report.num_arrays = static_cast<int64_t>(plan.output.arrays.size() + plan.output.small.size());
  report.bytes_in = size_on_disk(from);
  report.bytes_out = size_on_disk(target);
  return report;
}

}  // namespace welkin::data
