// SPDX-License-Identifier: Apache-2.0
// Linear layers with delayed weight gradients: a backward pass computes only the input gradients, for which other ranks wait,
// and records the remaining work.
#pragma once

#include <memory>

#include "model/base/model.h"
#include "parallel/shard/param_table.h"
#include "parallel/shard/weight_queue.h"

namespace welkin::parallel {

// Installs wrappers at the linear layers of `table`'s parameters. Their bias is then added separately, as under tensor
// parallelism, and their backward pass leaves out gradients of trained weights. Call it before apply_plan(), whose wrappers
// then surround these: the matmul of this rank is delayed, and the plan's communication belongs to the input gradients.
void defer_weight_gradients(model::Model& model, const ParamTable& table, const std::shared_ptr<WeightQueue>& queue);

}  // namespace welkin::parallel
