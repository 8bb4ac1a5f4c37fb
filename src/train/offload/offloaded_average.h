// SPDX-License-Identifier: Apache-2.0
// The moving average of weights, kept in a store and brought unit by unit.
#pragma once

#include <memory>
#include <vector>

#include "train/offload/offloaded_optimizer.h"

namespace welkin::train {

class OffloadedAverage : public WeightAverage {
 public:
  OffloadedAverage(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters, const OffloadPlan& plan);

  void update(const at::Tensor& found_inf) override;
  void restart() override;
  void swap() override;
  std::vector<NamedState> states() override { return states_.states(); }
  const BlockStore& store() const { return states_.store(); }

 private:
  void each(bool changes_weights, const std::function<void(WeightAverage&)>& body);

  StateUnits states_;
  std::vector<StateWindows> windows_;
  UnitWeights weights_;
  std::vector<std::unique_ptr<WeightAverage>> averages_;  // one per unit
};

}  // namespace welkin::train
