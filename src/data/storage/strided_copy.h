// SPDX-License-Identifier: Apache-2.0
// Copies a 4-D block of floats between any two layouts, reading the source in the order of its memory: crop, axis swap, flip and
// the values' transform of a box in one pass.
#pragma once

#include <array>
#include <cstdint>

#include "data/storage/channel_op.h"

namespace welkin::data {

// Axis 3 is contiguous in the output (to_stride[3] == 1). Strides count floats; those of the source may be negative.
struct StridedBlock {
  const float* from = nullptr;
  float* to = nullptr;
  std::array<int64_t, 4> from_stride{};
  std::array<int64_t, 4> to_stride{};
  std::array<int64_t, 4> extent{};
  const ChannelOp* op = nullptr;  // applied to every row that was copied; null: none
};

// Owns and allocates nothing: may run under bus_guard.h.
void copy_strided(const StridedBlock& block);

}  // namespace welkin::data
