// SPDX-License-Identifier: Apache-2.0
// The memory of an optimizer's lists for ops/update/fused_update.h and ops/update/device_update.h.
#pragma once

#include <optional>
#include <vector>

#include "ops/device/device_tables.h"
#include "ops/update/fused_update.h"
#include "train/optim/optimizer.h"

namespace welkin::train {

// The factor by which ops/update/fused_update.h multiplies gradients; the scalar lies in the host's memory.
float gradient_scale(const StepInputs& inputs);

// Nothing unless values and gradients are float32 on a CPU and dense; `first` and `second` are states by row of the parameters,
// `second` may be empty.
std::optional<std::vector<ops::UpdateSpan>> update_spans(const StepLists& lists, const std::vector<at::Tensor>& first,
                                                         const std::vector<at::Tensor>& second);

// The same for the kernels of a GPU, if they are loaded and take all of the tensors.
std::optional<std::vector<ops::UpdateSpan>> device_update_spans(const StepLists& lists, const std::vector<at::Tensor>& first,
                                                                const std::vector<at::Tensor>& second);

// The scalars that these kernels read; `steps` is Adam's count, undefined for SGD.
ops::UpdateScalars update_scalars(const StepInputs& inputs, const at::Tensor& steps);

}  // namespace welkin::train
