// SPDX-License-Identifier: Apache-2.0
// Tied weights: parameters that stages on several ranks of a pipeline use. Each rank has a copy. The copies stay equal, since
// all get the sum of their gradients (sum_tied_gradients in parallel/shard). This finds the holders and sends nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/segment.h"
#include "parallel/comm/group.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/pipeline/stage_cut.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

// Ranks of a pipeline that have copies of the same parameters.
struct TiedStages {
  Group ranks;  // with equal coordinates on all other axes, in the order of the pipeline
  std::vector<std::string> parameters;
};

// Positions in a pipeline of `ranks` whose stages use the row's parameter, ascending. Stage s is on rank s % ranks.
std::vector<int64_t> holders_of(const std::vector<model::Segment>& segments, const std::vector<StageRange>& stages, int64_t ranks,
                                const ParamRow& row);

// The tied weights of this rank, from all rows of the whole model. Every rank of the mesh calls it once: it makes their groups.
std::vector<TiedStages> tied_stages(const std::vector<model::Segment>& segments, const std::vector<StageRange>& stages,
                                    const ParamTable& table, const MeshGroups& groups);

}  // namespace welkin::parallel
