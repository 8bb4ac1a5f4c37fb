// SPDX-License-Identifier: Apache-2.0
// Collectives with gradients, in pairs: what goes forward determines what the gradient does. They are public: a model's own layer
// may use them. Differentiable once. The loss is one number that every member computes (or whose parts all members add up): its
// gradient is what each member's backward pass starts from.
//
// | function            | forward                          | backward                         |
// | ------------------- | -------------------------------- | -------------------------------- |
// | copy_to_group       | identity                         | sum over the group               |
// | reduce_from_group   | sum over the group               | identity                         |
// | split_to_group      | own part along a dim             | all parts                        |
// | gather_from_group   | all parts along a dim            | own part                         |
// | all_gather_autograd | all parts along a dim            | own part of the sum              |
// | reduce_scatter_autograd | own part of the sum along a dim  | all parts                        |
// | all_to_all_autograd | all-to-all                       | the all-to-all back              |
//
// gather_from_group is for what every member then computes alike (a head, a loss); all_gather_autograd for what each member uses
// in its own way (keys and values; the input of a column-split matmul). Sums are taken in float32 for low-precision tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "parallel/comm/collectives.h"

namespace welkin::parallel {

at::Tensor copy_to_group(const Group& group, const at::Tensor& x);
at::Tensor reduce_from_group(const Group& group, const at::Tensor& x);
// `lengths`: the extent of each member's part along `dim`; their sum is the whole.
at::Tensor split_to_group(const Group& group, const at::Tensor& x, int64_t dim, const Lengths& lengths);
at::Tensor gather_from_group(const Group& group, const at::Tensor& x, int64_t dim, const Lengths& lengths);
at::Tensor all_gather_autograd(const Group& group, const at::Tensor& x, int64_t dim, const Lengths& lengths);
at::Tensor reduce_scatter_autograd(const Group& group, const at::Tensor& x, int64_t dim, const Lengths& lengths);
at::Tensor all_to_all_autograd(const Group& group, const at::Tensor& x, const AllToAll& layout);

}  // namespace welkin::parallel
