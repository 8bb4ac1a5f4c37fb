// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementwise/update_table.h"

namespace welkin::ops {

const UpdateKernel& update_kernel_portable() { return kUpdates<4>; }

}  // namespace welkin::ops
