// SPDX-License-Identifier: Apache-2.0
// Memory for vectors that begins at a cache line; what it holds is undefined after it has grown. Torch-free.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace welkin::ops {

template <typename T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t size) { room(size); }

  // At least `size` elements.
  T* room(int64_t size) {
    if (size > size_) {
      data_.reset();  // before the new one is taken
      data_.reset(static_cast<T*>(::operator new (static_cast<size_t>(size) * sizeof(T), std::align_val_t{kLine})));
      size_ = size;
    }
    return data_.get();
  }
  T* data() const { return data_.get(); }

 private:
  static constexpr size_t kLine = 64;
  struct Release {
    void operator()(T* data) const { ::operator delete (data, std::align_val_t{kLine}); }
  };
  std::unique_ptr<T[], Release> data_;
  int64_t size_ = 0;
};

}  // namespace welkin::ops
