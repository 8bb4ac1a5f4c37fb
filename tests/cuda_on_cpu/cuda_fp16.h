// SPDX-License-Identifier: Apache-2.0
// CUDA's half for the host's compiler (cuda_runtime_api.h).
#pragma once

#include <c10/util/Half.h>

using __half = c10::Half;

inline float __half2float(__half value) { return value; }
inline __half __float2half_rn(float value) { return {value}; }
