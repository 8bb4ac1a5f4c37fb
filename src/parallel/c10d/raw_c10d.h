// SPDX-License-Identifier: Apache-2.0
// c10d without what collectives.h adds: only for measuring what that costs.
#pragma once

#include <ATen/core/Tensor.h>

#include "parallel/comm/group.h"

namespace welkin::parallel {

// The sum over the members in the caller's memory, as c10d does it. Throws what c10d throws.
void raw_all_reduce(const Group& group, const at::Tensor& values);

}  // namespace welkin::parallel
