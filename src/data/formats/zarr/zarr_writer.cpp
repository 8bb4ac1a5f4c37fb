// SPDX-License-Identifier: Apache-2.0
// A folder of Zarr arrays, version 2 or 3: one file per chunk, compressed in parallel.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/process/host.h"
#include "core/process/thread_pool.h"
#include "core/text.h"
#include "data/formats/array_writer.h"
#include "data/formats/json_values.h"
#include "data/formats/npy_file.h"
#include "data/formats/zarr/zarr_metadata.h"
#include "data/storage/stored_values.h"

namespace welkin::data {
namespace {

constexpr const char* kZarr3Nan = "AAAAAAAA+H8=";  // NaN as xarray writes a _FillValue: base64 of a little-endian double

std::string zarr2_type(Dtype dtype) {
  if (dtype == Dtype::BF16) {
    throw DataError("data", "Zarr 2 has no name for bfloat16", "Use --format zarr3, or --dtype float16, float32 or int16");
  }
  const std::string header = npy_header_of({}, dtype);  // the names are numpy's
  return header.substr(header.find(": '") + 3, 3);
}

// xarray wants the names of the axes of every array, also where there is none.
bool has_axes(const OutputArray& array) { return !array.axes.empty() || array.shape.empty(); }

// Every chunk has a file. With named axes there is no fill value: xarray would take it for that of missing values.
Json zarr2_fill(const OutputArray& array) {
  if (array.nan_is_missing) return "NaN";
  if (has_axes(array)) return {};
  return array.dtype == Dtype::Bool ? Json(false) : Json(0);
}

Json zarr2_codec(const Codec& codec) {
  switch (codec.kind) {
    case CodecKind::Zlib:
      return {{"id", "zlib"}, {"level", codec.level}};
    case CodecKind::Gzip:
      return {{"id", "gzip"}, {"level", codec.level}};
    case CodecKind::Zstd:
      return {{"id", "zstd"}, {"level", codec.level}, {"checksum", true}};
    case CodecKind::Lz4:
      return {{"id", "lz4"}, {"acceleration", 1}};
    case CodecKind::Shuffle:
      return {{"id", "shuffle"}, {"elementsize", codec.width}};
    case CodecKind::Blosc:
      return {
          {"id", "blosc"}, {"cname", codec.compressor}, {"clevel", codec.level}, {"shuffle", codec.shuffle}, {"blocksize", 0}};
    default:
      throw InternalError("a codec that Zarr 2 has not");
  }
}

Json zarr3_codec(const Codec& codec) {
  const auto named = [](const char* name, Json settings) { return Json{{"name", name}, {"configuration", std::move(settings)}}; };
  switch (codec.kind) {
    case CodecKind::Gzip:
      return named("gzip", {{"level", codec.level}});
    case CodecKind::Zstd:
      return named("zstd", {{"level", codec.level}, {"checksum", true}});
    case CodecKind::Blosc: {
      constexpr std::array<const char*, 3> kShuffles{"noshuffle", "shuffle", "bitshuffle"};
      return named("blosc", {{"cname", codec.compressor},
                             {"clevel", codec.level},
                             {"shuffle", kShuffles.at(static_cast<size_t>(codec.shuffle))},
                             {"typesize", codec.width},
                             {"blocksize", 0}});
    }
    case CodecKind::Crc32c:
      return {{"name", "crc32c"}};
    case CodecKind::Shuffle:
      return named("numcodecs.shuffle", {{"elementsize", codec.width}});
    case CodecKind::Lz4:
      return named("numcodecs.lz4", {{"acceleration", 1}});
    default:
      throw InternalError("a codec that Zarr 3 has not");
  }
}

class ZarrWriter : public ArrayWriter {
 public:
  ZarrWriter(std::filesystem::path folder, int version, const OutputFile& output)
      : folder_(std::move(folder)),
        version_(version),
        arrays_(output.arrays),
        pool_({.num_threads = usable_cores(), .name = "zarr"}) {
    for (const auto& [array, values] : output.small) {
      arrays_.push_back(array);
      if (arrays_.back().chunk.empty()) arrays_.back().chunk = arrays_.back().shape;
    }
    write_group("", output.attributes);
    for (const OutputArray& array : arrays_) write_metadata(array);
    for (size_t i = 0; i < output.small.size(); ++i) {
      const auto& [array, values] = output.small[i];
      write(output.arrays.size() + i, whole_region(array.shape), stored_values(values, array.dtype));
    }
  }

  void write(size_t index, const ArrayRegion& region, StoredBlock values) override {
    const OutputArray& array = arrays_[index];
    std::vector<Extents> chunks = chunks_of(array, region);
    pool_.parallel_for(static_cast<int64_t>(chunks.size()),
                       [&](int64_t i) { write_chunk(array, chunks[static_cast<size_t>(i)], region, values); });
  }

  void finish() override {  // every file is synced when the folder is published
    if (version_ == 2) consolidate();
  }

 private:
  static std::vector<Extents> chunks_of(const OutputArray& array, const ArrayRegion& region) {
    std::vector<Extents> chunks{{}};
    for (size_t d = 0; d < array.shape.size(); ++d) {
      std::vector<Extents> longer;
      for (const Extents& chunk : chunks) {
        for (int64_t i = region.begin[d] / array.chunk[d]; i * array.chunk[d] < region.end[d]; ++i) {
          longer.push_back(chunk);
          longer.back().push_back(i);
        }
      }
      chunks = std::move(longer);
    }
    return chunks;
  }

  // All metadata in one file, as xarray and zarr-python look for them: opening the folder is one read. Nothing is read back:
  // another rank may be writing the same files.
  void consolidate() const {
    const Json consolidated{{"zarr_consolidated_format", 1}, {"metadata", metadata_}};
    write_file_atomically(folder_ / ".zmetadata", consolidated.dump(1) + "\n");
  }

  // A chunk at the edge is filled up with zeros.
  void write_chunk(const OutputArray& array, const Extents& index, const ArrayRegion& region, StoredBlock values) const {
    const auto width = static_cast<int64_t>(dtype_bytes(array.dtype));
    std::vector<std::byte> bytes(zarr_chunk_bytes(array.chunk, array.dtype, array.name));
    const Extents from_stride = c_strides(region.extent()), to_stride = c_strides(array.chunk);
    const size_t rank = array.shape.size();
    Extents extent(rank), place(rank, 0);
    int64_t first = 0, num_rows = 1;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t begin = index[d] * array.chunk[d];
      extent[d] = std::min(begin + array.chunk[d], array.shape[d]) - begin;
      first += (begin - region.begin[d]) * from_stride[d];
      if (d + 1 < rank) num_rows *= extent[d];
    }
    const int64_t row = rank == 0 ? 1 : extent.back();
    for (int64_t i = 0; i < num_rows; ++i) {
      int64_t from = first, to = 0;
      for (size_t d = 0; d + 1 < rank; ++d) from += place[d] * from_stride[d], to += place[d] * to_stride[d];
      std::memcpy(bytes.data() + to * width, values.data() + from * width, static_cast<size_t>(row * width));
      for (size_t d = rank < 1 ? 0 : rank - 1; d > 0 && ++place[d - 1] == extent[d - 1];) place[--d] = 0;
    }
    const ByteBuffer stored = encode_chunk(array.codecs, bytes);
    ZarrArray keys;
    keys.has_prefix = version_ == 3;
    keys.separator = version_ == 3 ? '/' : '.';
    const std::filesystem::path path = folder_ / array.name / keys.chunk_file(index);
    make_folders(path.parent_path());
    const FileDescriptor file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    write_fully(file, path, {reinterpret_cast<const char*>(stored.data()), stored.size()});
  }

  // `name` is relative to the folder.
  void write_json(const std::filesystem::path& name, const Json& json) {
    const std::filesystem::path path = folder_ / name;
    const FileDescriptor file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    write_fully(file, path, json.dump(1) + "\n");
    metadata_[name.generic_string()] = json;
  }

  void write_group(const std::filesystem::path& name, const Attributes& attributes) {
    make_folders(folder_ / name);
    if (version_ == 3) {
      write_json(name / "zarr.json", {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", attributes_json(attributes)}});
      return;
    }
    write_json(name / ".zgroup", {{"zarr_format", 2}});
    if (!attributes.empty()) write_json(name / ".zattrs", attributes_json(attributes));
  }

  void write_metadata(const OutputArray& array) {
    std::filesystem::path parent = std::filesystem::path(array.name).parent_path();
    for (; !parent.empty(); parent = parent.parent_path()) {
      if (!metadata_.contains((parent / (version_ == 3 ? "zarr.json" : ".zgroup")).generic_string())) write_group(parent, {});
    }
    make_folders(folder_ / array.name);
    version_ == 3 ? write_zarr3(array) : write_zarr2(array);
  }

  static void write_codecs(const OutputArray& array, Json& list, Json (*to_json)(const Codec&)) {
    for (const Codec& codec : array.codecs) list.push_back(to_json(codec));
  }

  void write_zarr2(const OutputArray& array) {
    const std::filesystem::path name = array.name;
    Json filters = Json::array(), compressor;
    for (const Codec& codec : array.codecs) {
      if (&codec == &array.codecs.back()) {
        compressor = zarr2_codec(codec);
      } else {
        filters.push_back(zarr2_codec(codec));
      }
    }
    write_json(name / ".zarray", {{"zarr_format", 2},
                                  {"shape", array.shape},
                                  {"chunks", array.chunk},
                                  {"dtype", zarr2_type(array.dtype)},
                                  {"order", "C"},
                                  {"fill_value", zarr2_fill(array)},
                                  {"filters", filters.empty() ? Json() : filters},
                                  {"compressor", compressor},
                                  {"dimension_separator", "."}});
    Json attributes = attributes_json(array.attributes);
    if (has_axes(array)) attributes["_ARRAY_DIMENSIONS"] = array.axes;
    if (!attributes.empty()) write_json(name / ".zattrs", attributes);
  }

  void write_zarr3(const OutputArray& array) {
    Json codecs = Json::array();
    codecs.push_back({{"name", "bytes"}});
    if (dtype_bytes(array.dtype) > 1) codecs[0]["configuration"] = {{"endian", "little"}};
    write_codecs(array, codecs, zarr3_codec);
    Json json{{"zarr_format", 3},
              {"node_type", "array"},
              {"shape", array.shape},
              {"data_type", type_name_of(array.dtype)},
              {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", array.chunk}}}}},
              {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
              {"fill_value", array.nan_is_missing         ? Json("NaN")
                             : array.dtype == Dtype::Bool ? Json(false)
                             : is_float(array.dtype)      ? Json(0.0)
                                                          : Json(0)},
              {"codecs", codecs},
              {"attributes", attributes_json(array.attributes)}};
    if (array.nan_is_missing) json["attributes"]["_FillValue"] = kZarr3Nan;
    if (has_axes(array)) json["dimension_names"] = array.axes;
    write_json(std::filesystem::path(array.name) / "zarr.json", json);
  }

  static bool is_float(Dtype dtype) {
    return dtype == Dtype::F64 || dtype == Dtype::F32 || dtype == Dtype::F16 || dtype == Dtype::BF16;
  }

  std::filesystem::path folder_;
  int version_;
  std::vector<OutputArray> arrays_;
  Json metadata_ = Json::object();  // what every file of metadata holds, by its name in the folder
  ThreadPool pool_;
};

}  // namespace

std::unique_ptr<ArrayWriter> make_zarr_writer(const std::filesystem::path& folder, int version, const OutputFile& output) {
  return std::make_unique<ZarrWriter>(folder, version, output);
}

}  // namespace welkin::data
