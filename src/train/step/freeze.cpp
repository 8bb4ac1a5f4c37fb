// SPDX-License-Identifier: Apache-2.0
#include "train/step/freeze.h"

#include <algorithm>

#include "core/error.h"
#include "core/glob.h"
#include "core/text.h"

namespace welkin::train {
namespace {

int64_t elements_of(const parallel::ParamRow& row) {
  int64_t elements = 1;
  for (const int64_t extent : row.global_shape) elements *= extent;
  return elements;
}

// Freezes the parameters that the pattern matches; returns their number.
size_t freeze_matching(const parallel::ParamTable& table, const std::string& pattern) {
  std::vector<std::string> names;
  size_t found = 0;
  for (const parallel::ParamRow& row : table.rows()) {
    names.push_back(row.name);
    if (!matches_glob(pattern, row.name)) continue;
    row.local.set_requires_grad(false);
    ++found;
  }
  if (found > 0) return found;
  const auto near = nearest(pattern, names);
  throw ConfigError("train", cat("no parameter has such a name: freeze=", pattern),
                    cat("Names are for instance ", join(near.empty() ? std::vector(1, names.front()) : near, ", "),
                        "; * stands for any text: blocks.0.*"));
}

}  // namespace

std::string freeze_parameters(const parallel::ParamTable& table, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return {};
  std::vector<std::string> counts;
  for (const std::string& pattern : patterns) counts.push_back(cat(pattern, ": ", freeze_matching(table, pattern)));
  int64_t elements = 0;
  size_t frozen = 0;
  for (const parallel::ParamRow& row : table.rows()) {
    if (row.local.requires_grad()) continue;
    elements += elements_of(row);
    ++frozen;
  }
  if (frozen == table.rows().size()) {
    throw ConfigError("train", cat("every parameter is frozen, nothing is left to train: freeze=[", join(patterns, ", "), "]"),
                      "Leave some out; welkin predict and evaluate need no training");
  }
  return cat("Frozen: ", frozen, " of ", table.rows().size(), " tensors with ", elements, " of ", table.num_parameters(),
             " parameters (", join(counts, ", "), ")");
}

}  // namespace welkin::train
