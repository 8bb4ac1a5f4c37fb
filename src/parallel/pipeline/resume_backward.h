// SPDX-License-Identifier: Apache-2.0
// A backward pass that continues from gradients which another process has computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace welkin::parallel {

// (), zero, float32. Its backward pass gives `outputs` these gradients, of the same shapes, whatever factor it receives. So it
// can replace a loss wherever a backward pass starts.
at::Tensor resume_backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients);

}  // namespace welkin::parallel
