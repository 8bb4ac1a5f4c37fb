// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementwise/update_table.h"

namespace welkin::ops {

const UpdateKernel& update_kernel_avx2() { return kUpdates<8>; }

}  // namespace welkin::ops
