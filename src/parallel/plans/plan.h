// SPDX-License-Identifier: Apache-2.0
// A sharding plan as data: one row per kind of site. apply_plan() shards the parameters that the rows name and installs
// wrappers at their sites. The model code does not change. The rows also tell which gradients are partial sums over which axes: a
// parameter whose site is between SplitTokens and GatherTokens sees a part of the tokens.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/base/model.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/shard/param_table.h"
#include "parallel/tokens/context_attention.h"

namespace welkin::parallel {

// Parallel styles of sites. Tokens are dim 1 of (B, N, D).
struct SplitTokens {  // from here on each member has its own tokens; with two axes each part of the first is split by the second
  std::vector<Axis> axes;
};
struct GatherTokens {  // from here on every member has all tokens again, and all do the same
  std::vector<Axis> axes;
};
struct ColumnParallelInput {  // the one input of several column-split matmuls: gathered where the tokens are split over the axis
                              // too
  Axis axis = Axis::Tp;
};
struct ColumnParallel {  // a Linear's outputs are split: rows of the weight, elements of the bias
  Axis axis = Axis::Tp;
  int64_t parts = 1;  // blocks of outputs, each of which is split: 3 for a joint q, k, v
  int64_t units = 0;  // that stay whole in each block: attention heads; 0: every output by itself
};
struct RowParallel {  // a Linear's inputs are split; matmuls are summed (and tokens split again), then the bias is added
  Axis axis = Axis::Tp;
};
struct ContextParallelAttention {  // attention over tokens that are split over the axis
  Axis axis = Axis::Cp;
  ContextMode mode = ContextMode::AllGather;
};

// Parallel styles of what is no site.
struct AllTokens {};  // a parameter that stands before SplitTokens or after GatherTokens
// Where the input itself is split (Plan::input_axes), a site whose tokens are those of the rows that are read, or of the whole:
struct OwnFromRead {};  // from the tokens of the rows to the own ones
struct OwnFromAll {};   // from the tokens of the whole to the own ones
struct ReadFromOwn {};  // from own tokens to those of the rows read; the others are zero and unused
struct TokenMask {};    // a dropout layer on (B, own tokens, all features)
struct ColumnMask {     // a dropout layer on (B, tokens of the section, own features)
  Axis axis = Axis::Tp;
};
struct AttentionMask {  // a dropout layer on attention weights (B, own heads, own queries, keys)
  Axis heads = Axis::Tp, tokens = Axis::Cp;
  ContextMode mode = ContextMode::AllGather;
};

using ParallelStyle =
    std::variant<SplitTokens, GatherTokens, ColumnParallelInput, ColumnParallel, RowParallel, ContextParallelAttention, AllTokens,
                 OwnFromRead, OwnFromAll, ReadFromOwn, TokenMask, ColumnMask, AttentionMask>;

struct PlanRow {
  std::string pattern;  // a site, parameter or dropout layer; * stands for one part of the path: "blocks.*.attn.q"
  ParallelStyle style;
};

struct Plan {
  int64_t num_tokens = 0;  // of a sample
  std::vector<PlanRow> rows;
  // Axes over which the input is split before it enters the model: a member reads the rows of patches that its tokens need, and
  // gives them back; every gradient is then a part of a sum over these axes. SplitTokens splits what is left.
  std::vector<Axis> input_axes = {};
  int64_t tokens_per_row = 0;  // of the grid of patches; only with input_axes
};

// "blocks.*.attn" against "blocks.3.attn".
bool matches_pattern(const std::string& pattern, const std::string& name);

// Before the first forward pass and before any optimizer or Reducer sees the table. `table` is the model's; rows of split
// parameters keep their global shape and hold the local shard, cut from the present values. ConfigError when something does not
// divide, naming it and what would; or when a row names nothing, or a parameter is neither near a site nor named.
void apply_plan(const Plan& plan, model::Model& model, ParamTable& table, const MeshGroups& groups);

}  // namespace welkin::parallel
