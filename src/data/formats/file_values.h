// SPDX-License-Identifier: Apache-2.0
// Values that lie in a file as they are, at fixed strides: npy, raw files, contiguous HDF5, members of a tar file. Torch-free.
#pragma once

#include <cstdint>
#include <memory>

#include "data/storage/stored_array.h"
#include "data/storage/stored_values.h"
#include "data/storage/watched_file.h"

namespace welkin::data {

// Copies `region` of an array whose first value lies at byte `offset` and whose strides are `byte_stride`. Short runs
// are copied from the mapping under its guard, long ones are read. From 64 KiB on, a system call is cheaper than the
// page faults of a mapping.
void read_file_values(const WatchedFile& file, uint64_t offset, StoredType type, const ArrayRegion& region,
                      const Extents& byte_stride, const ValueTarget& target);

// Byte strides of a whole array in C or Fortran order.
Extents file_strides(const Extents& shape, Dtype dtype, bool fortran_order);

class FileArray : public StoredArray {
 public:
  // DataError when the file does not reach as far as the shape says.
  FileArray(ArrayFacts facts, std::shared_ptr<const WatchedFile> file, uint64_t offset);

  std::optional<MappedFloats> mapped() const override;
  uint64_t bytes_requested() const override { return file_->bytes_requested(); }

 protected:
  void read_stored(const ArrayRegion& region, const ValueTarget& target) const override;

 private:
  std::shared_ptr<const WatchedFile> file_;
  uint64_t offset_;
  Extents byte_stride_;
};

}  // namespace welkin::data
