// SPDX-License-Identifier: Apache-2.0
// Archives that hold one npy file per sample (WebDataset tar files, LMDB): all samples of one kind are one array, along its
// first axis. "000017.fields.npy" is a sample of the array `fields`, "000017.npy" one of the array without a name. The order is
// that of the archive. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/storage/stored_array.h"

namespace welkin::data {

struct SampleEntry {
  std::string name;
  uint64_t offset = 0, size = 0;  // of its bytes in the archive
};

// Reads all of `out` at an offset; throws DataError.
using ReadAt = std::function<void(uint64_t offset, std::span<std::byte> out)>;

// Adds the arrays that the entries make, and the contents of the sidecar among them. Other entries are named in not_numbers.
// DataError naming the member when samples of one array differ in type or shape.
void add_sample_arrays(const std::vector<SampleEntry>& entries, const std::shared_ptr<const WatchedFile>& bytes, ArrayFile& file);

}  // namespace welkin::data
