// SPDX-License-Identifier: Apache-2.0
// CUDA's bfloat16 for the host's compiler (cuda_runtime_api.h).
#pragma once

#include <c10/util/BFloat16.h>

using __nv_bfloat16 = c10::BFloat16;

inline float __bfloat162float(__nv_bfloat16 value) { return value; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {value}; }
