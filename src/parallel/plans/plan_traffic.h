// SPDX-License-Identifier: Apache-2.0
// What a plan's collectives move in a training step, without a run: arithmetic on the rows and on the sizes of the model's
// layers. Gradients and messages between pipeline stages are not among them. A style that communicates has its rule here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/base/model.h"
#include "model/base/model_cost.h"
#include "parallel/mesh/mesh.h"
#include "parallel/plans/plan.h"

namespace welkin::parallel {

// Calls of one collective over one group in the passes of one sample.
struct PlanCalls {
  AxisSet axes;
  std::string name;        // as in the flight recorder: "all_reduce"
  double calls = 0;        // of a forward and a backward pass
  double values = 0;       // as the flight recorder counts: of this rank's tensor, of a gather the whole
  bool is_wide = false;    // values travel in float32 or wider, also under mixed precision: sums
  bool is_beside = false;  // the computation goes on meanwhile
};

// Of the rank `rank` of the mesh. `model`: the whole model, of which only shapes are read. `cost`: of one sample; nothing is
// known of a model whose cost has no layers. `runs_again`: whether the forward pass of a row's sites is made again for the
// backward pass; empty: of none.
std::vector<PlanCalls> plan_traffic(const Plan& plan, const model::Model* model, const model::ModelCost& cost, const Mesh& mesh,
                                    int64_t rank, const std::function<bool(const std::string& pattern)>& runs_again = {});

// True if the traffic depends on kernels, which only the model's layers know.
bool reads_layers(const Plan& plan);

}  // namespace welkin::parallel
