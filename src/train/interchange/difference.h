// SPDX-License-Identifier: Apache-2.0
// Compares two checkpoints of any formats, tensor by tensor.
#pragma once

#include <string>
#include <vector>

#include "train/interchange/state.h"

namespace welkin::train::interchange {

enum class TensorMatch { EqualBits, Differs, OtherShape, OnlyFirst, OnlySecond };

struct TensorDifference {
  std::string name;
  TensorMatch verdict = TensorMatch::EqualBits;
  std::string detail;   // shapes or dtypes if they differ
  double largest = 0;   // absolute; NaN if only one of the two is NaN
  double relative = 0;  // 2-norm of the difference over that of the first
};

// Groups that only one of two formats can hold (a run's scalars, an optimizer), which the comparison leaves out. Empty when the
// formats are the same.
std::vector<std::string> groups_of_one(const State& first, const State& second);

// Compares tensors of the same name. Tensors of different dtypes are compared in float64 and count as different.
std::vector<TensorDifference> compare(const State& first, const State& second);

bool is_equal(const std::vector<TensorDifference>& rows);
// One row per tensor that differs (with `all`: per tensor), and a summary line.
std::string difference_table(const std::vector<TensorDifference>& rows, bool all);

// Everything about one checkpoint: format, facts, a row per tensor, totals, notes.
std::string listing(const State& state);

}  // namespace welkin::train::interchange
