// SPDX-License-Identifier: Apache-2.0
// An optimizer whose states are kept elsewhere and come unit by unit: the same bits as one optimizer of all parameters.
#pragma once

#include <memory>
#include <vector>

#include "train/offload/state_units.h"
#include "train/optim/weight_average.h"

namespace welkin::train {

// Who has weights that are kept elsewhere, too: by number of the parameter, each is there between wait() and let_go(), which
// start() precedes by as much as it can.
class WeightHolder {
 public:
  virtual ~WeightHolder() = default;
  virtual void start(const std::vector<size_t>& parameters) = 0;
  virtual void wait(const std::vector<size_t>& parameters) = 0;
  virtual void let_go(const std::vector<size_t>& parameters, bool is_changed) = 0;
};

// The weights of a unit while its states are there, and the next unit's on their way.
class UnitWeights {
 public:
  // `holder` null: weights are always there.
  UnitWeights(WeightHolder* holder, const std::vector<StateWindows>& units);
  void before(size_t unit);
  void after(size_t unit, bool is_changed);

 private:
  WeightHolder* holder_;
  std::vector<std::vector<size_t>> parameters_;  // of each unit
};

// How the states are made and kept.
struct OffloadPlan {
  c10::Device device = c10::kCPU;
  StateUnits::MakeStore make_store{};
  UpdateScope scope = UpdateScope::Parameter;
  double bytes_per_element = 4;
  int64_t buffer_bytes = int64_t{64} << 20;
  bool staged = false;              // as on a GPU: for tests
  WeightHolder* weights = nullptr;  // who has the weights, where they are kept elsewhere: parameters are not cut then
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
  UnitWeights weights_;
  std::vector<OptimizerPtr> optimizers_;  // one a unit
};

}  // namespace welkin::train
