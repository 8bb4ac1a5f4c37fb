// SPDX-License-Identifier: Apache-2.0
// An npy file as one array without a name, mapped, in either order of memory.
#include "data/formats/file_values.h"
#include "data/formats/formats.h"
#include "data/formats/npy_file.h"
#include "data/formats/sidecar.h"

namespace welkin::data {
namespace {

// A sidecar may name the array and give it attributes and coordinates.
void add_npy_sidecar(const std::filesystem::path& path, ArrayFile& file, ArrayFacts& facts) {
  const auto document = read_sidecar(path);
  if (!document) return;
  add_sidecar(*document, sidecar_path(path).string(), file);
  for (const auto& [name, side] : document->arrays) {
    if (side.values) continue;
    facts.name = name;
    facts.axes = side.axes;
    add_packing(side.attributes, facts);
    return;
  }
}

}  // namespace

ArrayFile open_npy_array(const std::filesystem::path& path) {
  const NpyFile npy(path);
  const NpyHeader& header = npy.header();
  ArrayFacts facts{
      .source = path.string(), .name = "", .shape = header.shape, .chunk = {}, .codecs = {}, .axes = {}, .packing = {}};
  facts.dtype = header.dtype;
  facts.big_endian = header.big_endian;
  facts.fortran_order = header.fortran_order;
  facts.stored_bytes = npy.file().size() - header.data_offset;
  ArrayFile file{.path = path, .format = "npy", .arrays = {}, .not_numbers = {}, .attributes = {}};
  add_npy_sidecar(path, file, facts);
  const std::string name = facts.name;
  file.arrays[name] = std::make_shared<FileArray>(std::move(facts), npy.shared_file(), header.data_offset);
  return file;
}

}  // namespace welkin::data
