// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementwise/update_table.h"

namespace welkin::ops {

const UpdateKernel& update_kernel_avx512() { return kUpdates<16>; }

}  // namespace welkin::ops
