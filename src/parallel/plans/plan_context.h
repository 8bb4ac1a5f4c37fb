// SPDX-License-Identifier: Apache-2.0
// State of the styles of a plan while it is applied to a model. It lives as long as apply_plan(); wrappers capture what they
// need later by value.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/comm/mesh_groups.h"
#include "parallel/plans/plan.h"
#include "parallel/shard/param_table.h"
#include "parallel/tokens/column_input.h"
#include "parallel/tokens/token_split.h"

namespace welkin::parallel {

inline constexpr int64_t kTokenDim = 1;  // of (B, N, D)

struct PlanContext {
  const Plan& plan;
  model::Model& model;
  ParamTable& table;
  const MeshGroups& groups;
  TokenSplit tokens;
  std::shared_ptr<WeightQueue> weights{};                               // queue of delayed weight gradients; may be null
  std::map<std::string, std::shared_ptr<ColumnInput>> column_inputs{};  // by the path of the layer and the axis

  // The levels of the token split that are not in the input already.
  std::vector<TokenSplit::Level> inner_levels() const;
  // The style of the first row that names it; null without one.
  const ParallelStyle* style_of(const std::string& name) const;
  // The input that sites of the same layer share; null if nobody shares it along the axis.
  std::shared_ptr<ColumnInput> column_input_near(const model::Site& site, Axis axis);
  // Replaces the parameter by this member's shard, in the table and in the model. ConfigError when the dim does not divide.
  void split_parameter(ParamRow& row, Shard shard, Axis axis);
};

// The layer between the blocks of its two grids: what halo_plan() takes.
BlockLayer layer_on_blocks(const HaloConvolution& style, const model::LocalRule& rule, const Mesh& mesh);
// Returns "blocks.3.attn." for "blocks.3.attn.core".
std::string home_of(const model::Site& site);
// Returns "1, 2, 3, 6" for 6.
std::string divisors_text(int64_t number);

}  // namespace welkin::parallel
