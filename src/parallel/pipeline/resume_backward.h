// SPDX-License-Identifier: Apache-2.0
// A backward pass that goes on from gradients which another process has computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace welkin::parallel {

// (), zero, float32: its backward pass gives `outputs` these gradients, of the same shapes, whatever factor comes in. So it
// stands for a loss wherever one starts a backward pass.
at::Tensor resume_backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients);

}  // namespace welkin::parallel
