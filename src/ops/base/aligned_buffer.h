// SPDX-License-Identifier: Apache-2.0
// Memory for vectors, aligned to a cache line; growing loses its contents. Torch-free.
#pragma once

#include <cstdint>
#include <memory>

#include "ops/base/large_blocks.h"

namespace welkin::ops {

template <typename T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t size) { reserve(size); }

  // Returns room for at least `size` elements.
  T* reserve(int64_t size) {
    if (size > size_) {
      data_.reset();  // before the allocation, which may throw
      size_ = 0;
      data_.reset(static_cast<T*>(allocate_cpu_block(static_cast<size_t>(size) * sizeof(T))));
      size_ = size;
    }
    return data_.get();
  }
  T* data() const { return data_.get(); }

 private:
  struct Release {
    void operator()(T* data) const { free_cpu_block(data); }
  };
  std::unique_ptr<T[], Release> data_;
  int64_t size_ = 0;
};

}  // namespace welkin::ops
