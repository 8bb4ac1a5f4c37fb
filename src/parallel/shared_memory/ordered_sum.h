// SPDX-License-Identifier: Apache-2.0
// Reductions over members in the order of their places, element by element in the type of the values: every partial sum of a
// 16-bit type is rounded. The bits do not depend on threads, times, or how the values are cut into pieces.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace welkin::parallel {

enum class OrderedReduction { Sum, Max, Min };  // a NaN of any member is the result

// float32, float64, bfloat16, float16, int32, int64 and uint8.
bool has_ordered_reduction(c10::ScalarType type);

// `parts[m]` are member m's `count` values; `out` may be one of them.
void reduce_in_order(c10::ScalarType type, OrderedReduction reduction, std::byte* out, const std::vector<const std::byte*>& parts,
                     int64_t count);

}  // namespace welkin::parallel
