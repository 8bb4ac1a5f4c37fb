// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing: the forward pass of a part of a model keeps only its inputs, and the backward pass
// recomputes it (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace welkin::ops {

using TensorsFunction = std::function<std::vector<at::Tensor>(std::vector<at::Tensor>)>;

// part(in), differentiable once. `weights`: the leaves that the part reads besides `in`. The backward pass throws a ConfigError
// if it finds another leaf that requires a gradient. The part runs now without a graph, and in the backward pass again with
// one, under the current autocast. It must return the same values both times (masks from counters do). It is kept until then,
// with its captures. Hooks on a weight itself are called in both graphs, hooks on its gradient accumulation
// node once.
std::vector<at::Tensor> recomputed(TensorsFunction part, const std::vector<at::Tensor>& in,
                                   const std::vector<at::Tensor>& weights);

}  // namespace welkin::ops
