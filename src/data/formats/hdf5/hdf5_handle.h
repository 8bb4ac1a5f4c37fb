// SPDX-License-Identifier: Apache-2.0
// Internal to hdf5_*.cpp: an owned HDF5 identifier, the text of the error stack, and the state of an open file. Everything here
// is used under an Hdf5Lock.
#pragma once

#include <hdf5.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "data/formats/hdf5/hdf5_file.h"

namespace welkin::data {

// The destructor closes it under the lock.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close_function) : id_(id), close_(close_function) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ < 0) return;
    const Hdf5Lock lock;
    close_(id_);
  }

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  herr_t close() { return close_(std::exchange(id_, -1)); }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// "cannot <action>: path=..., dataset=..., reason=..." from HDF5's error stack, which it clears.
DataError hdf5_error(std::string_view action, const Hdf5File& file, std::string_view object);
DataError hdf5_error(std::string_view action, const std::filesystem::path& path, std::string_view object);

struct Hdf5File::Impl {
  std::filesystem::path path;
  Hdf5Handle file;
  bool writable = false;
  mutable std::map<std::string, Hdf5Handle, std::less<>> datasets;  // kept open: each has its chunk cache

  hid_t dataset(std::string_view name) const;  // DataError with the names that there are
  Hdf5Handle object(std::string_view name) const;
};

// A float of 16 bits with so many bits of exponent (5: IEEE half, 8: bfloat16): HDF5 1.10 has no name for them.
Hdf5Handle hdf5_two_byte_float(size_t exponent_bits);

// Memory type of the values that are read and written.
hid_t hdf5_memory_type(Hdf5Type type);

}  // namespace welkin::data
