// SPDX-License-Identifier: Apache-2.0
// FLOPs, parameters and memory of the U-Net of fields; torch-free.
#pragma once

#include <array>
#include <cstdint>

#include "model/base/memory_cost.h"
#include "model/base/model_cost.h"
#include "model/unet/unet2d_options.h"

namespace welkin::model {

// `grid`: latitudes and longitudes.
ModelCost unet2d_cost(const Unet2dOptions& options, const std::array<int64_t, 2>& grid);
MemoryCost unet2d_memory_cost(const Unet2dOptions& options, const std::array<int64_t, 2>& grid);

}  // namespace welkin::model
