// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing: a part of a model of which the forward pass keeps nothing but the inputs, and which the backward pass
// runs again (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace welkin::ops {

using TensorsFunction = std::function<std::vector<at::Tensor>(std::vector<at::Tensor>)>;

// part(in), differentiable once. `weights`: the leaves that the part reads besides `in`; the backward pass throws ConfigError
// where it finds another that asks for a gradient. The part runs now, without a graph, and in the backward pass again, there with
// one and under the autocast that holds now; it must give the same values both times (masks from counters do) and is kept until
// then, with all that it captured. Hooks of a weight itself are called in both graphs, those of the node that adds up its
// gradient once.
std::vector<at::Tensor> recomputed(TensorsFunction part, const std::vector<at::Tensor>& in,
                                   const std::vector<at::Tensor>& weights);

}  // namespace welkin::ops
