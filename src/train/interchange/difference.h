// SPDX-License-Identifier: Apache-2.0
// Two checkpoints of any formats, tensor by tensor.
#pragma once

#include <string>
#include <vector>

#include "train/interchange/state.h"

namespace welkin::train::interchange {

enum class TensorMatch { EqualBits, Differs, OtherShape, OnlyFirst, OnlySecond };

struct TensorDifference {
  std::string name;
  TensorMatch verdict = TensorMatch::EqualBits;
  std::string detail;   // shapes or dtypes where they differ
  double largest = 0;   // absolute; NaN where one is NaN and the other is not
  double relative = 0;  // 2-norm of the difference over that of the first
};

// Groups that only one of two formats can hold (a run's scalars, an optimizer): left out of the comparison. Empty when the
// formats are the same.
std::vector<std::string> groups_of_one(const State& first, const State& second);

// Tensors of the same name are compared; those of another dtype after both became float64, and count as different.
std::vector<TensorDifference> compare(const State& first, const State& second);

bool is_equal(const std::vector<TensorDifference>& rows);
// One row per tensor that differs, all with `all`, and a line that sums up.
std::string difference_table(const std::vector<TensorDifference>& rows, bool all);

// Everything about one checkpoint: format, facts, a row per tensor, totals, notes.
std::string listing(const State& state);

}  // namespace welkin::train::interchange
