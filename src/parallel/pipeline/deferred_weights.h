// SPDX-License-Identifier: Apache-2.0
// Linear layers whose gradients by the weight wait: a backward pass computes the gradients by the inputs alone, which others wait
// for, and notes what is left to do.
#pragma once

#include <memory>

#include "model/base/model.h"
#include "parallel/shard/param_table.h"
#include "parallel/shard/weight_queue.h"

namespace welkin::parallel {

// Installs at the linear layers of `table`'s parameters. Their bias is added apart from then on, as under tensor parallelism, and
// their backward pass gives a weight that is trained no gradient. Before a plan is applied, whose wrappers then surround these:
// what waits is the matmul of this rank, and what the plan sends belongs to the gradients by inputs.
void defer_weight_gradients(model::Model& model, const ParamTable& table, const std::shared_ptr<WeightQueue>& queue);

}  // namespace welkin::parallel
