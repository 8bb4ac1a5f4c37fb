// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementwise/convert_loops.h"

namespace welkin::ops {

const ConvertKernel& convert_kernel_avx2() { return kConvert<8>; }

}  // namespace welkin::ops
