// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementwise/normal_loops.h"

namespace welkin::ops {

const NormalKernel& normal_kernel_avx512() { return kNormals; }

}  // namespace welkin::ops
