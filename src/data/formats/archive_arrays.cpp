// SPDX-License-Identifier: Apache-2.0
// Tar files, LMDB, and raw binary files as arrays: their own parts find the bytes, file_values.h and sample_arrays.h read them.
#include "core/error.h"
#include "core/text.h"
#include "data/formats/file_values.h"
#include "data/formats/formats.h"
#include "data/formats/lmdb_index.h"
#include "data/formats/sample_arrays.h"
#include "data/formats/sidecar.h"
#include "data/formats/tar_index.h"

namespace welkin::data {
namespace {

using ReadIndex = std::vector<SampleEntry> (*)(const ReadAt&, uint64_t, std::string_view);

ArrayFile open_archive(const std::filesystem::path& path, const std::filesystem::path& bytes_path, std::string_view format,
                       ReadIndex read_index) {
  const auto bytes = std::make_shared<const WatchedFile>(bytes_path);
  ArrayFile file{.path = path, .format = std::string(format), .arrays = {}, .not_numbers = {}, .attributes = {}};
  const ReadAt read_at = [&](uint64_t offset, std::span<std::byte> out) { bytes->read(offset, out); };
  add_sample_arrays(read_index(read_at, bytes->size(), bytes_path.string()), bytes, file);
  return file;
}

}  // namespace

ArrayFile open_tar_arrays(const std::filesystem::path& path) {
  return open_archive(path, path, "WebDataset tar", read_tar_index);
}

ArrayFile open_lmdb_arrays(const std::filesystem::path& path) {
  return open_archive(path, std::filesystem::is_directory(path) ? path / "data.mdb" : path, "LMDB", read_lmdb_index);
}

ArrayFile open_raw_arrays(const std::filesystem::path& path) {
  const std::string sidecar = sidecar_path(path).string();
  const auto document = read_sidecar(path);
  ArrayFile file{.path = path, .format = "raw", .arrays = {}, .not_numbers = {}, .attributes = {}};
  if (!document) throw DataError("data", cat("a raw file without a description: path=", path.string()), cat("Write ", sidecar));
  add_sidecar(*document, sidecar, file);
  const auto bytes = std::make_shared<const WatchedFile>(path);
  for (const auto& [name, side] : document->arrays) {
    if (!side.shape) continue;
    ArrayFacts facts{.source = name.empty() ? path.string() : cat(path.string(), ", dataset=", name),
                     .name = name,
                     .shape = *side.shape,
                     .chunk = {},
                     .codecs = {},
                     .axes = side.axes,
                     .packing = {}};
    facts.dtype = side.dtype;
    facts.big_endian = side.big_endian;
    facts.fortran_order = side.fortran_order;
    add_packing(side.attributes, facts);
    auto array = std::make_shared<FileArray>(std::move(facts), bytes, side.offset);
    file.arrays[name] = std::move(array);
  }
  return file;
}

}  // namespace welkin::data
