// SPDX-License-Identifier: Apache-2.0
// Which weights are gathered together where a rank holds but a piece of each: those that the model reads within one of its
// outermost sites (a block, a convolution) make a unit; small sites, and what stands outside of all, make one that is there
// during the whole pass, as do tied weights, which more than one site may read.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/base/model.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

struct WeightUnit {
  model::Site* site = nullptr;          // null: the whole model
  bool is_matmul = false;               // the site is a linear layer's: where something is installed, its bias is added by itself
  int64_t chunk = 0;                    // of a pipeline's rank (ParamRow::chunk): a site lies within one
  std::vector<int64_t> other_chunks{};  // of tied weights, whose passes need it too
  std::vector<ParamRow*> rows;
};

// In the order of the forward pass, chunk by chunk, of each the one of the whole model first; it may have no rows. Before it come
// those of tied weights that later chunks need too.
std::vector<WeightUnit> weight_units(model::Model& model, ParamTable& table);

// bring(1) is called before the site's forward pass, leave(whether a graph was made) after it, and bring(-1) before its backward
// pass, once for each result.
void surround_passes(model::Site& site, const std::function<void(int64_t)>& bring, const std::function<void(bool)>& leave);

}  // namespace welkin::parallel
