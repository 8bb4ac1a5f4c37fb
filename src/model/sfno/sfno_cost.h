// SPDX-License-Identifier: Apache-2.0
// FLOPs, parameters and memory of the SFNO; torch-free.
#pragma once

#include "model/base/memory_cost.h"
#include "model/base/model_cost.h"
#include "model/sfno/sfno_options.h"

namespace welkin::model {

// FLOPs of the Legendre transforms are counted. Fourier transforms are not matmuls, so theirs are not.
ModelCost sfno_cost(const SfnoOptions& options);
MemoryCost sfno_memory_cost(const SfnoOptions& options, const CheckpointedBlocks& checkpointed = {});

}  // namespace welkin::model
