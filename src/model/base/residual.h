// SPDX-License-Identifier: Apache-2.0
// Residual prediction: a model of fields predicts the change from the newest input step, which is added here. Torch-free, but for
// the name of a tensor.
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

// output (B, C', H, W), input (B, C, H, W). The runs are all of the output's channels in order; without runs, what is added are
// the input channels from `newest` on.
at::Tensor add_newest(const at::Tensor& output, const at::Tensor& input, int64_t newest, const std::vector<ResidualRun>& runs);

}  // namespace welkin::model
