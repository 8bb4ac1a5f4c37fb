// SPDX-License-Identifier: Apache-2.0
// See cuda_runtime_api.h.
#pragma once

#include <c10/util/Exception.h>

#include "cuda_runtime_api.h"

#define C10_CUDA_CHECK(expression)                                                                            \
  do {                                                                                                        \
    const cudaError_t cuda_error = (expression);                                                              \
    TORCH_CHECK(cuda_error == cudaSuccess, "CUDA would not launch it: error ", static_cast<int>(cuda_error)); \
  } while (false)
