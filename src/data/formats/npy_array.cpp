// SPDX-License-Identifier: Apache-2.0
// An npy file as one array without a name, mapped, in either order of memory.
#include "data/formats/file_values.h"
#include "data/formats/formats.h"
#include "data/npy_file.h"

namespace welkin::data {

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
  file.arrays[""] = std::make_shared<FileArray>(std::move(facts), npy.shared_file(), header.data_offset);
  return file;
}

}  // namespace welkin::data
