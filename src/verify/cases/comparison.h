// SPDX-License-Identifier: Apache-2.0
// Compares a tensor with a reference: by the scale of the tensor, never element by element, since small entries are results of
// cancellation. A reference is a whole tensor, or samples of it with its norm and sum.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verify/cases/stored_tensors.h"

namespace welkin::verify {

enum class Verdict { Pass, Fail, Skipped };

struct ComparisonRow {
  std::string tensor;
  double max_abs = 0;       // max|a - b|
  double max_over_max = 0;  // max|a - b| over max|b|, or over the scale that samples give
  double rel_l2 = 0;        // ||a - b|| / ||b||
  double tolerance_max_over_max = std::numeric_limits<double>::infinity();
  double tolerance_rel_l2 = std::numeric_limits<double>::infinity();
  Verdict verdict = Verdict::Fail;
  std::string reason;  // reason of a skip or failure, or the kind of a special comparison
  std::string part;    // of the case: "forward", "loss", "gradient", "trajectory", "table", ...
};

struct Bounds {
  double rel_l2 = std::numeric_limits<double>::infinity();
  double max_over_max = std::numeric_limits<double>::infinity();
};

// Flat range of elements whose values are rounding noise in the reference.
using NoiseRange = std::optional<std::pair<int64_t, int64_t>>;

// Compares values of a whole tensor. Shapes must be equal, except that the reference may have tokens on their grid, (B, h, w,
// F) for (B, h w, F), and one number in any shape.
ComparisonRow compare_values(const std::string& name, const at::Tensor& got, const at::Tensor& wanted, const Bounds& bounds,
                             const NoiseRange& noise = std::nullopt);

// Compares one number, by its relative error.
ComparisonRow compare_number(const std::string& name, double got, double wanted, double relative);

// Compares values that must be equal: a failed row says how many differ.
ComparisonRow compare_exactly(const std::string& name, const at::Tensor& got, const at::Tensor& wanted);
ComparisonRow compare_flag(const std::string& name, bool equal, std::string reason_of_failure);

// One row for all values that `stored` has for the tensor `name`: itself, or .val at .idx, .norm, .sum, .channel_norm. The
// worst of them decides. If nothing is stored: a failed row.
ComparisonRow compare_stored(const std::string& name, const at::Tensor& got, const StoredTensors& stored, const Bounds& bounds,
                             const NoiseRange& noise = std::nullopt);

ComparisonRow skipped(const std::string& name, std::string reason);
ComparisonRow failed(const std::string& name, std::string reason, std::string part = {});

// "act.block0.idx" -> "act.block0": the tensor to which a stored name belongs.
std::string tensor_of(const std::string& stored_name);

}  // namespace welkin::verify
