// SPDX-License-Identifier: Apache-2.0
// Gradients by weights that are made after the gradients by inputs, for which other processes wait.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace welkin::parallel {

// Of one backward pass.
class WeightGradients {
 public:
  // `make` is called once and gives the gradient of `parameter`, in its type. It may call collectives: whoever shares them adds
  // and computes in the same order.
  void add(at::Tensor parameter, std::function<at::Tensor()> make);
  // The gradients accumulate in the parameters; nothing is left.
  void compute();
  bool empty() const { return waiting_.empty(); }

 private:
  struct Waiting {
    at::Tensor parameter;
    std::function<at::Tensor()> make;
  };
  std::vector<Waiting> waiting_;
};

// Where backward passes note what is left; shared by the wrappers of a model and who runs it.
struct WeightQueue {
  WeightGradients now;
};

// Adds to the gradient of a leaf.
void accumulate_gradient(const at::Tensor& leaf, const at::Tensor& gradient);

}  // namespace welkin::parallel
