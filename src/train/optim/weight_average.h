// SPDX-License-Identifier: Apache-2.0
// The exponential moving average of weights: e += (1 - decay) (p - e) after every update. Polyak and Juditsky, SIAM J. Control
// Optim. 30 (1992); the warm-up, decay = min(ema_decay, (1 + t) / (10 + t)) at update t from 1, is
// tf.train.ExponentialMovingAverage's.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

#include "train/optim/optimizer.h"

namespace welkin::train {

class WeightAverage {
 public:
  // Begins as the weights are.
  WeightAverage(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters);

  // After an update, in one pass and without waiting for the device; a step that was skipped (`found_inf` () float32 is 1)
  // changes nothing and is not counted.
  void update(const at::Tensor& found_inf);
  // Begins anew from the weights: they were loaded.
  void restart();
  // The weights become the average and the average the weights, in place; a second call undoes it.
  void swap();

  // The averages under the parameters' names, and the number of updates.
  std::vector<NamedState> states();

 private:
  double share_at(double update) const;

  config::OptimizerConfig config_;
  std::vector<OptimizerParameter> parameters_;
  std::vector<at::Tensor> average_;
  at::Tensor updates_;  // () float32; exact up to 2^24
};

// The weights are the average from here to end(). Null: nothing happens. `on_change` hears that the weights have changed.
class AveragedWeights {
 public:
  AveragedWeights(WeightAverage* average, std::function<void()> on_change) : average_(average), on_change_(std::move(on_change)) {
    swap();
  }
  ~AveragedWeights() {
    if (average_ != nullptr) average_->swap();  // an error is on its way: nobody uses the weights
  }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

  void end() {
    swap();
    average_ = nullptr;
  }

 private:
  void swap() {
    if (average_ == nullptr) return;
    average_->swap();
    on_change_();
  }

  WeightAverage* average_;
  std::function<void()> on_change_;
};

}  // namespace welkin::train
