// SPDX-License-Identifier: Apache-2.0
// FLOPs, parameters and memory of the Swin transformer; torch-free.
#pragma once

#include "model/base/memory_cost.h"
#include "model/base/model_cost.h"
#include "model/swin/swin_options.h"

namespace welkin::model {

ModelCost swin_cost(const SwinOptions& options);
// `is_mixed`: matmuls are of 16 bits; attention weights are also kept in float32.
MemoryCost swin_memory_cost(const SwinOptions& options, const CheckpointedBlocks& checkpointed = {}, bool is_mixed = false);

}  // namespace welkin::model
