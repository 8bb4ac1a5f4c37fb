// SPDX-License-Identifier: Apache-2.0
// FLOPs, parameters and memory of the vision transformer; torch-free.
#pragma once

#include "model/base/memory_cost.h"
#include "model/base/model_cost.h"
#include "model/vit/vit_options.h"

namespace welkin::model {

ModelCost vit_cost(const VitOptions& options);
MemoryCost vit_memory_cost(const VitOptions& options, const CheckpointedBlocks& checkpointed = {});

}  // namespace welkin::model
