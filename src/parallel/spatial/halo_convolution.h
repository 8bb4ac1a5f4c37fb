// SPDX-License-Identifier: Apache-2.0
// A convolution of boxes that are cut into blocks: halos are exchanged while the interior of the own block is computed; thin
// strips around it follow. Every cell of the result is computed once.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "parallel/comm/group.h"
#include "parallel/spatial/halo_plan.h"

namespace welkin::parallel {

// Applies a layer's kernel, without its activation, to boxes (B, C, ...) with a padding.
using PlaceKernel = std::function<at::Tensor(const std::vector<at::Tensor>&, const Cells& padding)>;

// x: own blocks, each (B, C, extents of plan->held). `weights`: the tensors besides x on which the result depends;
// a member without own cells returns zeros as their gradients. `channels`: of the result.
// Returns (B, channels, extents of plan->made), which may have no cells. Every member of the group calls it.
at::Tensor halo_convolution(const Group& group, const std::shared_ptr<const HaloPlan>& plan, const std::vector<at::Tensor>& x,
                            const std::vector<at::Tensor>& weights, int64_t channels, const PlaceKernel& place);

}  // namespace welkin::parallel
