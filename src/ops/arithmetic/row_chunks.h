// SPDX-License-Identifier: Apache-2.0
// Reproducible sums over rows: blocks of a device sum chunks of rows, then the chunks are summed in order.
// The chunk length depends only on the number of rows. Torch-free, and constexpr, so that nvcc also compiles it for the device.
#pragma once

#include <cstdint>

namespace welkin::ops {

// Rows of a chunk: `least`, or more if there would be more chunks than `most`.
constexpr int64_t chunk_length(int64_t rows, int64_t least, int64_t most) {
  const int64_t enough = (rows + most - 1) / most;
  return enough > least ? enough : least;
}

constexpr int64_t chunk_count(int64_t rows, int64_t length) { return (rows + length - 1) / length; }

}  // namespace welkin::ops
