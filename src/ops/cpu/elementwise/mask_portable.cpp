// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementwise/mask_kernel.h"
#include "ops/cpu/elementwise/mask_loops.h"

namespace welkin::ops {

const MaskKernel& mask_kernel_portable() {
  static constexpr MaskKernel kKernel{mask_factors};
  return kKernel;
}

}  // namespace welkin::ops
