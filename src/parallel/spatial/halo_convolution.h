// SPDX-License-Identifier: Apache-2.0
// A convolution of boxes that are cut into blocks: halos are exchanged while the interior of the own block is computed; thin
// strips around it follow. Every cell of the result is computed once.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "ops/convolution/piece_kernel.h"
#include "parallel/comm/group.h"
#include "parallel/spatial/halo_plan.h"

namespace welkin::parallel {

// x: own blocks, each (B, C, extents of plan->held). `weights`: the tensors besides x on which the result depends;
// a member without own cells returns zeros as their gradients. `channels`: of the result.
// Returns (B, channels, extents of plan->made), which may have no cells, after the activation. If the kernel can write into
// given memory, each piece is computed in its place with its activation. Else pieces are copied together before the activation,
// which would keep the result of each piece beside the whole. Every member of the group calls it.
at::Tensor halo_convolution(const Group& group, const std::shared_ptr<const HaloPlan>& plan, const std::vector<at::Tensor>& x,
                            const std::vector<at::Tensor>& weights, int64_t channels, const ops::PieceKernel& kernel);

}  // namespace welkin::parallel
