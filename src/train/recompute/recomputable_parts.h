// SPDX-License-Identifier: Apache-2.0
// The parts of a model that may run again, for `activation_checkpointing: budget:GIB`: sites that contain other sites and
// weights. The outermost ones are the model's parts. Each has several ways to run again, whole or by its inner sites.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/base/model.h"
#include "parallel/shard/param_table.h"

namespace welkin::train {

struct RecomputablePart {
  std::string kind;                          // the same for equal parts: name without numbers, shapes of weights
  std::vector<size_t> sites;                 // its own first, then the inner ones; numbers in RecomputableParts::sites
  std::vector<std::vector<size_t>> options;  // places in `sites` that run again: [0] none, [1] the whole part
};

struct RecomputableParts {
  std::vector<model::Site*> sites;
  std::vector<RecomputablePart> parts;  // in the order of the forward pass
};

RecomputableParts recomputable_parts(model::Model& model, const parallel::ParamTable& table);

}  // namespace welkin::train
