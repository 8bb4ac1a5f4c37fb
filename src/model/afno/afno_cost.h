// SPDX-License-Identifier: Apache-2.0
// FLOPs, parameters and memory of the AFNO; torch-free.
#pragma once

#include "model/afno/afno_options.h"
#include "model/base/memory_cost.h"
#include "model/base/model_cost.h"

namespace welkin::model {

// Fourier transforms are not matmuls, so their FLOPs are not counted.
ModelCost afno_cost(const AfnoOptions& options);
// `is_mixed`: matmuls are of 16 bits; the filters stay in float32.
MemoryCost afno_memory_cost(const AfnoOptions& options, const CheckpointedBlocks& checkpointed = {}, bool is_mixed = false);

}  // namespace welkin::model
