// SPDX-License-Identifier: Apache-2.0
// How a tensor is compared with a reference: by the scale of the tensor, never element by element, since small entries are
// results of cancellation. A reference is a whole tensor, or samples of it with its norm and sum.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/reference/stored_tensors.h"

namespace welkin::train::reference {

enum class Verdict { Pass, Fail, Skipped };

struct ComparisonRow {
  std::string tensor;
  double max_abs = 0;       // max|a - b|
  double max_over_max = 0;  // that over max|b|, or over the scale that samples give
  double rel_l2 = 0;        // ||a - b|| / ||b||
  double tolerance_max_over_max = std::numeric_limits<double>::infinity();
  double tolerance_rel_l2 = std::numeric_limits<double>::infinity();
  Verdict verdict = Verdict::Fail;
  std::string reason;  // of a skip, or of what kind of comparison this is where it is a special one
};

struct Bounds {
  double rel_l2 = std::numeric_limits<double>::infinity();
  double max_over_max = std::numeric_limits<double>::infinity();
};

// Flat range of elements whose values are rounding noise in the reference.
using NoiseRange = std::optional<std::pair<int64_t, int64_t>>;

// Values of a whole tensor. Shapes may differ (a view), element counts not: that is a failed row.
ComparisonRow compare_values(const std::string& name, const at::Tensor& got, const at::Tensor& wanted, const Bounds& bounds,
                             const NoiseRange& noise = std::nullopt);

// One number, relative.
ComparisonRow compare_number(const std::string& name, double got, double wanted, double relative);

// Rows for everything that `stored` holds of the tensor `name`: itself, or .val at .idx, .norm, .sum, .channel_norm.
// Nothing stored: no rows.
std::vector<ComparisonRow> compare_stored(const std::string& name, const at::Tensor& got, const StoredTensors& stored,
                                          const Bounds& bounds, const NoiseRange& noise = std::nullopt);

ComparisonRow skipped(const std::string& name, std::string reason);

}  // namespace welkin::train::reference
