// SPDX-License-Identifier: Apache-2.0
// Weight gradients that are computed after the input gradients, for which other processes wait.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace welkin::parallel {

// The delayed weight gradients of one backward pass.
class WeightGradients {
 public:
  // `make` is called once and returns the gradient of `parameter`, in its type. It may call collectives: all ranks of the group
  // must call add() and compute() in the same order.
  void add(at::Tensor parameter, std::function<at::Tensor()> make);
  // Accumulates the gradients in the parameters and empties the list.
  void compute();
  bool empty() const { return waiting_.empty(); }

 private:
  struct Waiting {
    at::Tensor parameter;
    std::function<at::Tensor()> make;
  };
  std::vector<Waiting> waiting_;
};

// The place where backward passes add delayed work; shared by the wrappers of a model and the code that runs it.
struct WeightQueue {
  WeightGradients now;
};

// Adds to the gradient of a leaf.
void accumulate_gradient(const at::Tensor& leaf, const at::Tensor& gradient);

}  // namespace welkin::parallel
