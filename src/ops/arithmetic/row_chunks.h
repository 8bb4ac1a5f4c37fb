// SPDX-License-Identifier: Apache-2.0
// Sums over rows whose bits are the same every time: blocks of a device sum chunks of rows, then the chunks are summed in order.
// How long a chunk is follows from the rows alone; torch-free, and constexpr, so that nvcc takes it for the device too.
#pragma once

#include <cstdint>

namespace welkin::ops {

// Rows of a chunk: `least`, or more where there would be more chunks than `most`.
constexpr int64_t chunk_length(int64_t rows, int64_t least, int64_t most) {
  const int64_t enough = (rows + most - 1) / most;
  return enough > least ? enough : least;
}

constexpr int64_t chunk_count(int64_t rows, int64_t length) { return (rows + length - 1) / length; }

}  // namespace welkin::ops
