// SPDX-License-Identifier: Apache-2.0
// The frame of optimizers whose update needs two sums of squares of every parameter: sums, one exchange of all of them if ranks
// hold parts, update. The derived class defines the sums.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "ops/update/fused_update.h"
#include "ops/update/pieces.h"
#include "train/optim/optimizer.h"

namespace welkin::train {

class NormedOptimizer : public Optimizer {
 public:
  void step(const StepInputs& inputs) final;
  bool takes_gradient_scale() const final { return true; }

 protected:
  explicit NormedOptimizer(std::vector<OptimizerParameter> parameters);

  // One row's tensors in the order of memory.
  struct Row {
    size_t row;
    at::Tensor value, gradient;
    bool decays;
  };
  using Sums = std::vector<std::array<double, 2>>;  // for each entry of the lists
  using SumTensors = std::pair<at::Tensor, at::Tensor>;

  // Both paths first count the step. The fused path is for float32 on a CPU, with states `first` and `second` by row; it leaves
  // skipped steps out.
  virtual void count(const StepInputs& /*inputs*/) {}
  // Then, in a step that may still be skipped on a device, ranks with parts exchange the values that the sums need.
  virtual void prepare(const StepLists& /*lists*/, const StepInputs& /*inputs*/) {}
  virtual Sums fused_sums(const StepLists& lists, const StepInputs& inputs, bool decays) = 0;
  virtual void fused_update(const StepLists& lists, const StepInputs& inputs, bool decays, const Sums& sums) = 0;
  // By aten's operators, without waiting for the device: () sums, then the update. Neither changes anything if the step is
  // skipped. The gradient is scaled already.
  virtual SumTensors reference_sums(const Row& row, const StepInputs& inputs) = 0;
  virtual void reference_update(const Row& row, const StepInputs& inputs, const SumTensors& sums) = 0;

  const std::vector<OptimizerParameter>& parameters() const { return parameters_; }

 private:
  void fused_step(const StepInputs& inputs, const std::array<StepLists, 2>& lists);
  void reference_step(const StepInputs& inputs, const std::array<StepLists, 2>& lists);

  std::vector<OptimizerParameter> parameters_;
};

}  // namespace welkin::train
