// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementwise/gelu_loops.h"

namespace welkin::ops {

const GeluKernels& gelu_kernels_avx512() { return kGelu<16>; }

}  // namespace welkin::ops
