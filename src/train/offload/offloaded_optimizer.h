// SPDX-License-Identifier: Apache-2.0
// An optimizer whose states are kept elsewhere and come unit by unit: the same bits as one optimizer of all parameters.
#pragma once

#include <memory>
#include <vector>

#include "train/offload/state_units.h"
#include "train/optim/weight_average.h"

namespace welkin::train {

// How the states are made and kept.
struct OffloadPlan {
  c10::Device device = c10::kCPU;
  StateUnits::MakeStore make_store{};
  UpdateScope scope = UpdateScope::Parameter;
  double bytes_per_element = 4;
  int64_t buffer_bytes = int64_t{64} << 20;
  bool staged = false;  // as on a GPU: for tests
};

class OffloadedOptimizer : public Optimizer {
 public:
  OffloadedOptimizer(const config::RunConfig& config, const OptimizerFactory& make, std::vector<OptimizerParameter> parameters,
                     const OffloadPlan& plan);

  void step(const StepInputs& inputs) override;
  bool takes_gradient_scale() const override { return optimizers_.front()->takes_gradient_scale(); }
  std::vector<NamedState> states() override { return states_.states(); }
  const BlockStore& store() const { return states_.store(); }

 private:
  StepInputs inputs_of(const StepInputs& inputs, const StateWindows& windows) const;

  StateUnits states_;
  std::vector<StateWindows> windows_;
  std::vector<OptimizerPtr> optimizers_;  // one a unit
};

}  // namespace welkin::train
