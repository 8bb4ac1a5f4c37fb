// SPDX-License-Identifier: Apache-2.0
// A sharding plan as data: one row per kind of site. apply_plan() shards the parameters that the rows name and installs
// wrappers at their sites. The model code does not change. The rows also determine which gradients are partial sums, and over
// which axes: a parameter whose site is between SplitTokens and GatherTokens sees a part of the tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/base/model.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/plans/mask_styles.h"
#include "parallel/plans/spatial_styles.h"
#include "parallel/plans/token_styles.h"
#include "parallel/plans/weight_styles.h"
#include "parallel/shard/param_table.h"
#include "parallel/shard/weight_queue.h"

namespace welkin::parallel {

// The effect of a row on the sites, parameters, dropout or convolution layers that it names. A style is a struct with some of
// these members: install() at a site, window() of a dropout layer, split() of a layer on blocks, enter() and leave() for the
// gradients (partial_sums.h).
using ParallelStyle = std::variant<
    // weights (weight_styles.h)
    ColumnParallelInput, ColumnParallel, RowParallel, GatheredChannels, GroupedChannels, SplitParameter,
    // tokens (token_styles.h)
    SplitTokens, GatherTokens, ContextParallelAttention, TokensToChannels, AllTokens, OwnFromRead, OwnFromAll, ReadFromOwn,
    // masks of dropout (mask_styles.h)
    TokenMask, ColumnMask, AttentionMask,
    // layers on blocks (spatial_styles.h)
    HaloConvolution, BlockNorm, SphereAnalysis, DegreeWeights, SphereSynthesis>;

struct PlanRow {
  std::string pattern;  // a site, parameter or layer; * stands for one part of the path: "blocks.*.attn.q"
  ParallelStyle style;
};

struct Plan {
  int64_t num_tokens = 0;  // per sample; 0: the model has no tokens
  std::vector<PlanRow> rows;
  // Axes over which the input is split before it enters the model: a member reads the rows, or the block, of patches that its
  // tokens need and returns them. Every gradient is then a partial sum over them. SplitTokens splits over the remaining axes.
  std::vector<AxisSet> input_axes = {};
  int64_t tokens_per_row = 0;  // of the grid of patches; only with input_axes
  // The cells of a sample (d, h, w), if samples are cut into blocks over the axes of kSpatial: a member reads its block, and
  // every gradient is a partial sum over these axes.
  std::optional<Cells> blocks = {};
  std::string note = {};  // for the log: effects of the plan that the user did not request; empty: none
};

// True for pattern "blocks.*.attn" and name "blocks.3.attn".
bool matches_pattern(const std::string& pattern, const std::string& name);

// Call it before the first forward pass and before any optimizer or Reducer sees the table. `table` is the model's; rows of
// split parameters keep their global shape and hold the local shard, cut from the current values. ConfigError for sizes that do
// not divide, with sizes that would; for a row that names nothing; and for a parameter neither near a site nor named.
// `weights`: the queue of delayed weight gradients (defer_weight_gradients() of parallel/pipeline).
void apply_plan(const Plan& plan, model::Model& model, ParamTable& table, const MeshGroups& groups,
                const std::shared_ptr<WeightQueue>& weights = nullptr);

}  // namespace welkin::parallel
