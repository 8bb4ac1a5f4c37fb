// SPDX-License-Identifier: Apache-2.0
// The exponential moving average of weights: e += (1 - decay) (p - e) after every update. Polyak and Juditsky, SIAM J. Control
// Optim. 30 (1992); the warm-up, decay = min(ema_decay, (1 + t) / (10 + t)) at update t from 1, is
// tf.train.ExponentialMovingAverage's.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "train/optim/optimizer.h"

namespace welkin::train {

class WeightAverage {
 public:
  virtual ~WeightAverage() = default;

  // After an update, in one pass; a step that was skipped (`found_inf` () float32 is 1) changes nothing and is not counted.
  virtual void update(const at::Tensor& found_inf) = 0;
  // Begins anew from the weights, after they were loaded.
  virtual void restart() = 0;
  // Exchanges the weights and the average in place; a second call undoes it.
  virtual void swap() = 0;

  // The averages under the parameters' names, and the number of updates.
  virtual std::vector<NamedState> states() = 0;
};

// An average that lies beside the weights. It never waits for the device.
class HeldAverage : public WeightAverage {
 public:
  // Begins as a copy of the weights.
  HeldAverage(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters);

  void update(const at::Tensor& found_inf) override;
  void restart() override;
  void swap() override;
  std::vector<NamedState> states() override;

 private:
  double share_at(double update) const;

  config::OptimizerConfig config_;
  std::vector<OptimizerParameter> parameters_;
  std::vector<at::Tensor> average_;
  at::Tensor updates_;  // () float32; exact up to 2^24
};

// From here to end() the weights have the average's values. Null: nothing happens. `on_change` hears that they changed.
class AveragedWeights {
 public:
  AveragedWeights(WeightAverage* average, std::function<void()> on_change) : average_(average), on_change_(std::move(on_change)) {
    swap();
  }
  ~AveragedWeights() {
    if (average_ == nullptr) return;
    try {
      average_->swap();
    } catch (const std::exception&) {
      return;  // an error is on its way: the weights are not used any more
    }
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
