// SPDX-License-Identifier: Apache-2.0
// Latitude-weighted metrics of fields as sums per sample and channel, so that any group can add them. Accumulated in float32 or
// wider. Source: the WeatherBench conventions that SC23 and DL4SCI25 use, with the exact pi and no negative weight at the poles.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "data/sample/dataset.h"

namespace welkin::train {

// (H) float64 weights with mean 1, proportional to max(0, cos(latitude)). With no latitudes the rows are those of the tutorials:
// 90 - 180 j / (H - 1), both poles included; a single row weighs 1.
at::Tensor latitude_weights(int64_t num_rows, const std::vector<double>& latitudes_degrees = {});

// (H) weights of a field's rows: latitude weights on the globe and for data with latitudes; ones on a plane.
at::Tensor row_weights(const data::SampleSpec& spec);

// Sums over the points of prediction, target (B, C, H, W) with weights (H): each (B, C).
struct WeightedSums {
  at::Tensor square_error;  // w (p - t)^2
  at::Tensor product;       // w p t
  at::Tensor prediction_square;
  at::Tensor target_square;
  at::Tensor weight{};  // sum of w over the points with a value; undefined if all have one
};
WeightedSums weighted_sums(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights);

// The same sums over the points with a value; the target is NaN at the others.
WeightedSums weighted_sums_of_points(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weights);

// (B, C): square root of the weighted mean square error over `num_points` points, or over the points with a value; NaN if there
// is none.
at::Tensor weighted_rmse(const WeightedSums& sums, int64_t num_points);

// (B, C): sum(w p t) / sqrt(sum(w p^2) sum(w t^2)). It is the anomaly correlation when a climatology has been subtracted from
// both.
at::Tensor weighted_acc(const WeightedSums& sums);

// (B, C, D, H, W) or (B, C, H, W) -> (B, C, H', W): all leading dims fold into H'. For unit weights, since boxes have no
// latitude.
at::Tensor fold_rows(const at::Tensor& values);

}  // namespace welkin::train
