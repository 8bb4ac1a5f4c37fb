// SPDX-License-Identifier: Apache-2.0
#include "train/learn/metrics.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "train/learn/loss.h"

namespace welkin::train {
namespace {

double row_latitude(int64_t row, int64_t num_rows) {
  return 90.0 - 180.0 * static_cast<double>(row) / static_cast<double>(num_rows - 1);
}

at::Tensor sum_points(const at::Tensor& values) { return values.sum({2, 3}); }

}  // namespace

at::Tensor latitude_weights(int64_t num_rows, const std::vector<double>& latitudes_degrees) {
  at::Tensor weights = at::empty({num_rows}, at::kDouble);
  double* w = weights.data_ptr<double>();
  double sum = 0;
  for (int64_t row = 0; row < num_rows; ++row) {
    const bool given = !latitudes_degrees.empty();
    const double latitude = given ? latitudes_degrees[static_cast<size_t>(row)] : num_rows == 1 ? 0 : row_latitude(row, num_rows);
    w[row] = std::max(0.0, std::cos(latitude * std::numbers::pi / 180));
    sum += w[row];
  }
  return weights.mul_(static_cast<double>(num_rows) / sum);
}

at::Tensor row_weights(const data::SampleSpec& spec) {
  const int64_t rows = spec.target.shape[1];
  const bool is_plane = spec.geometry == data::Geometry::Plane && spec.latitude.empty();
  return is_plane ? at::ones({rows}, at::kDouble) : latitude_weights(rows, spec.latitude);
}

WeightedSums weighted_sums(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights) {
  const at::Tensor p = widen(prediction);
  const at::Tensor t = widen(target);
  const at::Tensor w = weights.to(p.options()).view({1, 1, -1, 1});
  return {.square_error = sum_points(w * at::square(p - t)),
          .product = sum_points(w * p * t),
          .prediction_square = sum_points(w * at::square(p)),
          .target_square = sum_points(w * at::square(t))};
}

WeightedSums weighted_sums_of_points(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights) {
  const at::Tensor is_hole = at::isnan(target);
  WeightedSums sums = weighted_sums(prediction.masked_fill(is_hole, 0), target.masked_fill(is_hole, 0), weights);
  const at::Tensor has_value = is_hole.logical_not().to(sums.square_error.scalar_type());
  sums.weight = sum_points(has_value * weights.to(has_value.options()).view({1, 1, -1, 1}));
  return sums;
}

at::Tensor weighted_rmse(const WeightedSums& sums, int64_t num_points) {
  if (sums.weight.defined()) return at::sqrt(sums.square_error / sums.weight);
  return at::sqrt(sums.square_error / static_cast<double>(num_points));
}

at::Tensor weighted_acc(const WeightedSums& sums) { return sums.product / at::sqrt(sums.prediction_square * sums.target_square); }

at::Tensor fold_rows(const at::Tensor& values) { return values.dim() == 4 ? values : values.flatten(2, values.dim() - 2); }

}  // namespace welkin::train
