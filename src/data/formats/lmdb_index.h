// SPDX-License-Identifier: Apache-2.0
// Places of the values in an LMDB file (Lightning Memory-Mapped Database, data format 1, as LMDB 0.9 and py-lmdb
// write it): a walk through the B+ tree of its newest snapshot that checks every number, since the library itself
// trusts its files. Torch-free.
#pragma once

#include <string_view>

#include "data/formats/sample_arrays.h"

namespace welkin::data {

// True for the first bytes (at least kLmdbHeadBytes) of such a file.
inline constexpr size_t kLmdbHeadBytes = 24;
bool is_lmdb_head(std::span<const std::byte> head);

// Every key of the unnamed database, sorted as LMDB does, with the place of its value. DataError naming `source` and the page.
std::vector<SampleEntry> read_lmdb_index(const ReadAt& read_at, uint64_t file_bytes, std::string_view source);

}  // namespace welkin::data
