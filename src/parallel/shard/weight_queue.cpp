// SPDX-License-Identifier: Apache-2.0
#include "parallel/shard/weight_queue.h"

#include <ATen/core/grad_mode.h>

#include <utility>

namespace welkin::parallel {

void accumulate_gradient(const at::Tensor& leaf, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  at::Tensor& sum = leaf.mutable_grad();
  sum = sum.defined() ? sum.add_(gradient) : gradient;
}

void WeightGradients::add(at::Tensor parameter, std::function<at::Tensor()> make) {
  waiting_.push_back({std::move(parameter), std::move(make)});
}

void WeightGradients::compute() {
  for (Waiting& one : waiting_) {
    accumulate_gradient(one.parameter, one.make());
    one = {};
  }
  waiting_.clear();
}

}  // namespace welkin::parallel
