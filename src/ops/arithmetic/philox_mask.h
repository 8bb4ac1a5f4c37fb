// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a dropout mask, shared by the CPU and the CUDA kernel; torch-free. constexpr, so
// that nvcc also compiles the functions for the device. The word of global element e of a sample is
// word e mod 4 of philox(stream, step << 32 ^ sample, e / 4), and the element is kept if its word is at least the threshold.
#pragma once

#include <cstdint>

namespace welkin::ops {

inline constexpr int kMaxMaskDims = 6;

// The local tensor as rows of consecutive global elements: dim 0 is the sample, the last dim the row.
struct MaskLayout {
  int64_t num_samples = 0;
  int64_t rows_per_sample = 1;
  int64_t row_length = 1;
  int32_t num_row_dims = 0;                // dims between sample and row
  int64_t row_sizes[kMaxMaskDims] = {};    // local extents of these dims
  int64_t row_strides[kMaxMaskDims] = {};  // global strides, elements
  int64_t first_element = 0;               // global index of the local tensor's first element
};

struct MaskRule {
  uint64_t stream = 0;
  uint32_t threshold = 0;  // elements with smaller words are dropped
  float scale = 1.0F;      // factor of kept elements
};

// Global index of the first element of row `row` of a sample.
constexpr int64_t row_start(const MaskLayout& layout, int64_t row) {
  int64_t start = layout.first_element;
  for (int32_t d = layout.num_row_dims - 1; d >= 0; --d) {
    start += row % layout.row_sizes[d] * layout.row_strides[d];
    row /= layout.row_sizes[d];
  }
  return start;
}

constexpr uint64_t mask_counter(int64_t step, int64_t sample) {
  return (static_cast<uint64_t>(step) << 32) ^ static_cast<uint64_t>(sample);
}

// P(drop) = threshold / 2^32, exact to 2^-33. `rate` in [0, 1).
constexpr MaskRule mask_rule(uint64_t stream, double rate) {
  return {stream, static_cast<uint32_t>(rate * 0x1.0p32 + 0.5), static_cast<float>(1.0 / (1.0 - rate))};
}

}  // namespace welkin::ops
