// SPDX-License-Identifier: Apache-2.0
// The keys `offload`, `offload_path` and `offload_buffer_mib`: which parts of a run's state a rank keeps outside of its
// device's memory, and where.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "model/base/model.h"
#include "parallel/shard/gradient_exchange.h"
#include "parallel/shard/param_table.h"
#include "train/offload/activation_offload.h"
#include "train/offload/offloaded_average.h"
#include "train/offload/offloaded_optimizer.h"

namespace welkin::train {

// ConfigError for a CPU without offload_path, and for a setting that the device does not support.
void check_offload(const config::RunConfig& config, c10::Device device);

class Offload {
 public:
  // `config` outlives it.
  Offload(const config::RunConfig& config, c10::Device device) : config_(config), device_(device) {}

  // Wraps `exchange` if weights, or a rank's pieces of them, are offloaded; else returns it. The optimizer and the average,
  // which are made later, hold the weights.
  std::unique_ptr<parallel::GradientExchange> weights(std::unique_ptr<parallel::GradientExchange> exchange, model::Model& model,
                                                      parallel::ParamTable& table);
  // Made by the registry's `make` if states stay with the weights. `scope` and `states_per_element` are of the registry's row.
  OptimizerPtr optimizer(const OptimizerFactory& make, UpdateScope scope, double states_per_element,
                         std::vector<OptimizerParameter> parameters);
  std::unique_ptr<WeightAverage> average(std::vector<OptimizerParameter> parameters);
  // Installs it around the model's blocks, or its outermost sites if it has no blocks; null if activations stay. It is
  // installed last. ConfigError for a model without sites.
  std::unique_ptr<ActivationOffload> activations(model::Model& model, parallel::ParamTable& table);

  const std::vector<std::string>& notes() const { return notes_; }  // lines for the log: what is where
  int64_t buffer_bytes() const { return buffer_bytes_; }            // of host memory

 private:
  bool has_optimizer() const;
  bool has_weights() const { return weights_ != nullptr; }
  OffloadPlan plan(const std::string& holds) const;
  int64_t bytes_of_buffer() const;
  void note(const std::string& holds, const BlockStore& store);

  const config::RunConfig& config_;
  c10::Device device_;
  WeightHolder* weights_ = nullptr;  // null if weights are not offloaded
  std::vector<std::string> notes_;
  int64_t buffer_bytes_ = 0;
};

}  // namespace welkin::train
