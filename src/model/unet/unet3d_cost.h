// SPDX-License-Identifier: Apache-2.0
// FLOPs, parameters and memory of the 3-D U-Net; torch-free. Nominal: taps that fall on the padding count.
#pragma once

#include <array>
#include <cstdint>

#include "model/base/memory_cost.h"
#include "model/base/model_cost.h"
#include "model/unet/unet3d_options.h"

namespace welkin::model {

// `edges` of the input box: depth, height, width.
ModelCost unet3d_cost(const Unet3dOptions& options, const std::array<int64_t, 3>& edges);
MemoryCost unet3d_memory_cost(const Unet3dOptions& options, const std::array<int64_t, 3>& edges);

}  // namespace welkin::model
