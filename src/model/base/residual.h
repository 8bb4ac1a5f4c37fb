// SPDX-License-Identifier: Apache-2.0
// Residual prediction: a model of fields predicts the change from the newest input step, and this adds that step. Torch-free,
// except for the name of a tensor.
#pragma once

#include <cstdint>
#include <vector>

namespace at {
class Tensor;  // NOLINT(bugprone-forward-declaration-namespace): torch names one of another namespace too
}

namespace welkin::model {

// A run of output channels and the first input channel that is added to it; -1: none.
struct ResidualRun {
  int64_t channels = 0, input = -1;

  bool operator==(const ResidualRun&) const = default;
};

// output (B, C', H, W), input (B, C, H, W). The runs cover all output channels in order. Without runs, the input channels from
// `newest` on are added.
at::Tensor add_newest(const at::Tensor& output, const at::Tensor& input, int64_t newest, const std::vector<ResidualRun>& runs);

}  // namespace welkin::model
