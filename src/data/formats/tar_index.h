// SPDX-License-Identifier: Apache-2.0
// Places of the members of a tar file: ustar, GNU long names, and PAX's path and size. Torch-free; the bytes are hostile.
#pragma once

#include <string_view>

#include "data/formats/sample_arrays.h"

namespace welkin::data {

// The regular files of an archive of `file_bytes` bytes, in its order. DataError naming `source` and the offset for a wrong
// checksum, a member that reaches beyond the end, or an archive without an end.
std::vector<SampleEntry> read_tar_index(const ReadAt& read_at, uint64_t file_bytes, std::string_view source);

}  // namespace welkin::data
