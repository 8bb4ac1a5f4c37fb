// SPDX-License-Identifier: Apache-2.0
// Normals of a Philox stream by the vector: number i of stream `key` is core/philox.h's normal_pair for word i of the
// stream, times a scale, rounded to float; the same bits on every instruction set. Torch-free.
#pragma once

#include <cstdint>

namespace welkin::ops {

// out[0, count) = numbers [first, first + count). For one thread.
void fill_normals(uint64_t key, int64_t first, int64_t count, double scale, float* out);

}  // namespace welkin::ops
