// SPDX-License-Identifier: Apache-2.0
// Converts stored bytes of any number type, byte order and stride to floats or doubles. Owns and allocates nothing: may run
// under bus_guard.h. Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.h"

namespace welkin::data {

struct StoredType {
  Dtype dtype = Dtype::F32;
  bool big_endian = false;
};

// A rectangular block: value (i, j, ...) comes from `from` + i * from_stride[0] + ... and goes to element i * to_stride[0] + ...
// of `to`.
struct ValueBlock {
  const std::byte* from = nullptr;
  StoredType type{};
  std::span<const int64_t> extent;       // at most kMostArrayDims axes
  std::span<const int64_t> from_stride;  // bytes, may be negative
  void* to = nullptr;
  bool to_double = false;
  std::span<const int64_t> to_stride;  // elements
};

void copy_values(const ValueBlock& block);

// The other way, for writers: `count` doubles as little-endian values. Integers are rounded to nearest; the
// caller has checked the range.
void store_values(const double* from, size_t count, Dtype dtype, std::byte* to);
std::vector<std::byte> stored_values(const std::vector<double>& values, Dtype dtype);

// Two-byte floats as doubles, exactly.
double half_to_double(uint16_t bits);
double bfloat16_to_double(uint16_t bits);

}  // namespace welkin::data
