// SPDX-License-Identifier: Apache-2.0
// An optimizer whose states are in a store and come unit by unit: it gives the same bits as one optimizer of all parameters.
#pragma once

#include <memory>
#include <vector>

#include "train/offload/state_units.h"
#include "train/optim/weight_average.h"

namespace welkin::train {

// A holder of offloaded weights. A parameter, by its number, is in memory between wait() and let_go(). start() is called as
// early as possible before.
class WeightHolder {
 public:
  virtual ~WeightHolder() = default;
  virtual void start(const std::vector<size_t>& parameters) = 0;
  virtual void wait(const std::vector<size_t>& parameters) = 0;
  virtual void let_go(const std::vector<size_t>& parameters, bool is_changed) = 0;
};

// Keeps the weights of a unit in memory while its states are, and begins to read the next unit's.
class UnitWeights {
 public:
  // `holder` null: weights are always in memory.
  UnitWeights(WeightHolder* holder, const std::vector<StateWindows>& units);
  void before(size_t unit);
  void after(size_t unit, bool is_changed);

 private:
  WeightHolder* holder_;
  std::vector<std::vector<size_t>> parameters_;  // for each unit
};

// How the states are made and stored.
struct OffloadPlan {
  c10::Device device = c10::kCPU;
  StateUnits::MakeStore make_store{};
  UpdateScope scope = UpdateScope::Parameter;
  double bytes_per_element = 4;
  int64_t buffer_bytes = int64_t{64} << 20;
  bool staged = false;              // copies states to a stage, as on a GPU: for tests
  WeightHolder* weights = nullptr;  // holder of offloaded weights, null if none are: then parameters are not cut
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
  std::vector<OptimizerPtr> optimizers_;  // one per unit
};

}  // namespace welkin::train
