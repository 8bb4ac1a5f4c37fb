// SPDX-License-Identifier: Apache-2.0
// What the styles of a plan work with while it is applied to a model. Lives as long as apply_plan() does; what a wrapper needs
// later it captures by value.
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
  std::shared_ptr<WeightQueue> weights{};                               // where their gradients wait; may be null
  std::map<std::string, std::shared_ptr<ColumnInput>> column_inputs{};  // by the path of the layer and the axis

  // The levels that the input is not split over already.
  std::vector<TokenSplit::Level> inner_levels() const;
  // The style of the first row that names it; null where no row does.
  const ParallelStyle* style_of(const std::string& name) const;
  // The input that sites of the same layer share; null where nobody shares the axis.
  std::shared_ptr<ColumnInput> column_input_near(const model::Site& site, Axis axis);
  // Leaves this member's shard in the table and in the model. ConfigError when the dim does not divide.
  void split_parameter(ParamRow& row, Shard shard, Axis axis);
};

// "blocks.3.attn." of "blocks.3.attn.core".
std::string home_of(const model::Site& site);
// "1, 2, 3, 6" of 6.
std::string divisors_text(int64_t number);

}  // namespace welkin::parallel
