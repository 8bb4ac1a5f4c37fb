// SPDX-License-Identifier: Apache-2.0
// Mixed precision: the autocast dtype of a mode, and the dynamic loss scale of fp16.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "train/optim/optimizer.h"

namespace welkin::train {

// The dtype for ops::AutocastGuard; nothing in fp32.
std::optional<at::ScalarType> autocast_dtype(config::AmpMode mode);

// Dynamic loss scale: an overflow divides the scale by `factor` (not below `minimum`), `window` clean steps in a row multiply it.
// Scale and count stay on the device. Disabled (fp32, bf16) it is the identity.
class LossScaler {
 public:
  LossScaler(const config::PrecisionConfig& config, c10::Device device);

  bool enabled() const { return enabled_; }
  const at::Tensor& scale() const { return scale_; }
  at::Tensor scaled(const at::Tensor& loss) const;

  // () float32: the factor that unscales a gradient of the scaled loss.
  at::Tensor inverse() const;

  // Called after the step: `found_inf` () float32, 1 if a gradient was not finite.
  void update(const at::Tensor& found_inf);

  // () bool: the scale stands at its minimum, so an overflow has another cause than the scale.
  at::Tensor at_minimum() const;

  std::vector<NamedState> states();

 private:
  config::PrecisionConfig config_;
  bool enabled_;
  at::Tensor scale_;        // () float32
  at::Tensor clean_steps_;  // () int32
};

}  // namespace welkin::train
