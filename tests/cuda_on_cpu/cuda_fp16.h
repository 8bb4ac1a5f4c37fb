// SPDX-License-Identifier: Apache-2.0
// CUDA's half for the host's compiler (cuda_runtime_api.h).
#pragma once

#include <c10/util/Half.h>

using __half = c10::Half;  // NOLINT(bugprone-reserved-identifier)

inline float __half2float(__half value) { return value; }       // NOLINT(bugprone-reserved-identifier)
inline __half __float2half_rn(float value) { return {value}; }  // NOLINT(bugprone-reserved-identifier)
