// SPDX-License-Identifier: Apache-2.0
// Linear layers whose gradients by the weight wait: a backward pass computes the gradients by the inputs alone, which others wait
// for, and notes what is left to do.
#pragma once

#include <memory>
#include <vector>

#include "model/base/model.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

// Of one backward pass.
class WeightGradients {
 public:
  // `output` is the root of a graph to `weight`, a leaf that shares the memory of `parameter`.
  void add(at::Tensor output, at::Tensor weight, at::Tensor parameter, at::Tensor gradient);
  // The gradients accumulate in the parameters; nothing is left.
  void compute();
  bool empty() const { return waiting_.empty(); }

 private:
  struct Waiting {
    at::Tensor output, weight, parameter, gradient;
  };
  std::vector<Waiting> waiting_;
};

// Where backward passes note what is left; shared by the wrappers of a model and who runs it.
struct WeightQueue {
  WeightGradients now;
};

// Installs at the linear layers of `table`'s parameters that are trained, and gives how many these are. Their bias is added
// apart from then on, as under tensor parallelism, and their backward pass gives the weight no gradient. Before the first forward
// pass.
int64_t defer_weight_gradients(model::Model& model, const ParamTable& table, const std::shared_ptr<WeightQueue>& queue);

}  // namespace welkin::parallel
