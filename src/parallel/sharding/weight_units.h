// SPDX-License-Identifier: Apache-2.0
// Determines which sharded weights are gathered together. Weights that the model reads within one of its outermost sites (a
// block, a convolution) form a unit. Small sites and weights outside of all sites form another one, which stays for the whole
// pass, as do tied weights, which several sites may read.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/base/model.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

struct WeightUnit {
  model::Site* site = nullptr;          // null: the whole model
  bool is_matmul = false;               // the site is a linear layer's: a wrapper makes it add its bias separately
  int64_t chunk = 0;                    // number of the stage on a pipeline's rank (ParamRow::chunk); a site lies within one
  std::vector<int64_t> other_chunks{};  // for tied weights: other chunks whose passes need the unit
  std::vector<ParamRow*> rows;
};

// In the order of the forward pass, chunk by chunk. Each chunk begins with the unit of the whole model, which may have no rows.
// Units of tied weights that later chunks need, too, come before it.
std::vector<WeightUnit> weight_units(model::Model& model, ParamTable& table);

// bring(1) is called before the site's forward pass, leave(true if a graph was made) after it, and bring(-1) before its
// backward pass, once per result.
void surround_passes(model::Site& site, const std::function<void(int64_t)>& bring, const std::function<void(bool)>& leave);

}  // namespace welkin::parallel
