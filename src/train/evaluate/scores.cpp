// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "train/evaluate/channel_units.h"
#include "train/learn/metrics.h"
#include "train/learn/metrics_spectrum.h"

namespace welkin::train {

struct ScoreSums::Forecast {
  std::string name;
  at::Tensor square_error;     // (C) float64 sum over samples and points of the weighted square error
  at::Tensor rmse;             // (C) float64 sum over samples of their RMSE
  at::Tensor acc;              // (C) float64 sum over samples of their anomaly correlation
  at::Tensor absolute, error;  // (C) float64 sums over samples and points of the weighted |error| and of the weighted error
  at::Tensor spectrum{};       // (C, K) float64 sum over samples; undefined before the first
};

// The points of a batch that count.
struct ScoreSums::Points {
  at::Tensor is_hole;     // as the target, on its device; undefined: all have a value
  at::Tensor weight;      // (B, C) float64 sum of their weights
  at::Tensor has_points;  // (B, C)

  at::Tensor without_holes(const at::Tensor& values) const { return is_hole.defined() ? values.masked_fill(is_hole, 0) : values; }
};

namespace {

constexpr const char* kMeanMap = "time mean";
constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// The power that rounding to float32 leaves at every scale of values with this mean square.
double rounding_power(double mean_square) {
  constexpr double kUlp = 1.0 / (1 << 23), kRoundings = 16;  // in the file, by the normalisation, of its factors
  return kRoundings * kUlp * kUlp * mean_square;
}

// The mean square of a channel as it is stored, in units of its standard deviation.
double stored_mean_square(const data::SampleSpec& spec, size_t channel, double normalised) {
  if (spec.target_mean.empty()) return normalised;
  const double mean = spec.target_mean[channel] / spec.target_std[channel];
  return 2 * (normalised + mean * mean);
}

// Row weights. Boxes have no latitude: all their rows weigh the same.
at::Tensor weights_of_rows(const data::SampleSpec& spec, bool is_field) {
  const auto& shape = spec.target.shape;
  return is_field ? row_weights(spec) : at::ones({shape[1] * shape[2]}, at::kDouble);
}

at::Tensor flat_rows(const at::Tensor& values, bool is_field) {
  const at::Tensor wide = values.to(at::kCPU, at::kDouble);
  return is_field ? wide : fold_rows(wide);
}

// (B, C) -> (C), over the samples in which the channel has a point.
at::Tensor sum_where(const at::Tensor& has_points, const at::Tensor& values) {
  return at::where(has_points, values, at::zeros_like(values)).sum(0);
}

void accumulate(at::Tensor& sum, const at::Tensor& more) { sum = sum.defined() ? sum + more : more; }

std::vector<double> to_vector(const at::Tensor& values) {
  const at::Tensor flat = values.contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

// Lists of the members, one behind the other. Each goes behind its length, for no part of a collective is empty.
std::vector<int64_t> joined(const parallel::Group& group, const std::vector<int64_t>& own) {
  const auto members = static_cast<size_t>(group.size());
  std::vector<int64_t> part = {static_cast<int64_t>(own.size())};
  part.insert(part.end(), own.begin(), own.end());
  const at::Tensor size = at::full({1}, static_cast<int64_t>(part.size()), at::kLong);
  const at::Tensor sizes = parallel::all_gather(group, size, 0, parallel::Lengths(members, 1));
  const parallel::Lengths lengths(sizes.const_data_ptr<int64_t>(), sizes.const_data_ptr<int64_t>() + members);
  const at::Tensor all = parallel::all_gather(group, at::tensor(part, at::kLong), 0, lengths);
  std::vector<int64_t> values;
  const int64_t* next = all.const_data_ptr<int64_t>();
  for (const int64_t length : lengths) {
    values.insert(values.end(), next + 1, next + length);
    next += length;
  }
  return values;
}

}  // namespace

void check_has_points(const std::vector<Scores>& leads) {
  if (leads.empty() || std::ranges::any_of(leads, [](const Scores& lead) { return lead.scored > 0; })) return;
  throw DataError("evaluate", cat("no point of the targets has a value: samples=", leads.front().samples),
                  "Look at the fill values and masks of these files: welkin data inspect says how many points have none");
}

double ForecastScores::rmse() const {
  double sum = 0;
  for (const auto& channel : channels) sum += channel.rmse * channel.rmse;
  return channels.empty() ? 0 : std::sqrt(sum / static_cast<double>(channels.size()));
}

ScoreSums::ScoreSums(const data::SampleSpec& spec, at::Tensor time_mean, bool holes)
    : spec_(spec), time_mean_(std::move(time_mean)), is_field_(spec.target.shape.size() == 3), holes_(holes) {
  weights_ = weights_of_rows(spec, is_field_);
  points_ = at::zeros({spec.target.shape[0]}, at::kLong);
  scored_ = at::zeros_like(points_);
  weight_ = at::zeros({spec.target.shape[0]}, at::kDouble);
  std::vector<std::string> names = {"model"};
  if (has_persistence(spec)) {
    persistence_.emplace(spec);
    names.emplace_back("persistence");
  }
  if (time_mean_.defined()) names.emplace_back(kMeanMap);
  for (auto& name : names) {
    const auto zero = [&] { return at::zeros({spec.target.shape[0]}, at::kDouble); };
    forecasts_.push_back({name, zero(), zero(), zero(), zero(), zero()});
  }
}

ScoreSums::~ScoreSums() = default;
ScoreSums::ScoreSums(ScoreSums&&) noexcept = default;

ScoreSums::Points ScoreSums::points_of(const at::Tensor& target) const {
  const int64_t samples = target.size(0), channels = target.size(1);
  const int64_t all = target.numel() / (samples * channels);
  Points points{.is_hole = {}, .weight = at::full({samples, channels}, static_cast<double>(all), at::kDouble), .has_points = {}};
  if (holes_) {
    points.is_hole = at::isnan(target);
    const at::Tensor has_value = flat_rows(points.is_hole.logical_not(), is_field_);
    points.weight = (has_value * weights_.view({1, 1, -1, 1})).sum({2, 3});
  }
  points.has_points = points.weight.gt(0);
  return points;
}

void ScoreSums::add(const at::Tensor& input, const at::Tensor& target, const at::Tensor& prediction, const at::Tensor& losses) {
  const Points points = points_of(target);
  for (auto& forecast : forecasts_) {
    if (forecast.name == "model") add_forecast(forecast, prediction, target, points);
    if (forecast.name == "persistence") add_forecast(forecast, persistence_->of(input), target, points);
    if (forecast.name == kMeanMap) add_forecast(forecast, time_mean_.unsqueeze(0).expand_as(target), target, points);
  }
  const at::Tensor with_value = holes_ ? points.is_hole.logical_not() : at::ones_like(target, at::kBool);
  points_ += with_value.transpose(0, 1).flatten(1).sum(1).cpu();
  weight_ += points.weight.sum(0);
  scored_ += points.has_points.sum(0);
  losses_ += points.has_points.any(1).sum().item<int64_t>();
  accumulate(target_spectrum_, spectrum_of(target));
  const at::Tensor on_host = losses.to(at::kCPU, at::kDouble);
  const std::vector<double> each = to_vector(on_host);
  for (size_t i = 0; i < each.size(); ++i) {
    if (!std::isfinite(each[i])) nonfinite_.push_back(samples_ + static_cast<int64_t>(i));
  }
  samples_ += target.size(0);
  loss_ += on_host.sum().item<double>();
}

std::vector<at::Tensor*> ScoreSums::float_sums() {
  std::vector<at::Tensor*> sums{&weight_, &target_spectrum_};
  for (Forecast& forecast : forecasts_) {
    sums.insert(sums.end(),
                {&forecast.square_error, &forecast.rmse, &forecast.acc, &forecast.absolute, &forecast.error, &forecast.spectrum});
  }
  return sums;
}

void ScoreSums::add_up(const parallel::Group& replicas) {
  if (replicas.size() == 1) return;
  const int64_t own_bins = target_spectrum_.defined() ? target_spectrum_.size(1) : 0;  // 0: no samples here
  const int64_t bins =
      parallel::all_reduce(replicas, at::full({1}, own_bins, at::kLong), parallel::Reduction::Max).item<int64_t>();
  for (at::Tensor* sum : float_sums()) {
    if (!sum->defined()) *sum = at::zeros({points_.size(0), bins}, at::kDouble);
    *sum = parallel::all_reduce(replicas, *sum);
  }
  points_ = parallel::all_reduce(replicas, points_);
  scored_ = parallel::all_reduce(replicas, scored_);
  loss_ = parallel::all_reduce(replicas, at::full({1}, loss_, at::kDouble)).item<double>();
  losses_ = parallel::all_reduce(replicas, at::full({1}, losses_, at::kLong)).item<int64_t>();
  const std::vector<int64_t> samples = joined(replicas, {samples_});
  const auto before = samples.begin() + replicas.group_rank();
  const int64_t first = std::accumulate(samples.begin(), before, int64_t{0});
  for (int64_t& sample : nonfinite_) sample += first;
  nonfinite_ = joined(replicas, nonfinite_);
  samples_ = std::accumulate(samples.begin(), samples.end(), int64_t{0});
}

at::Tensor ScoreSums::spectrum_of(const at::Tensor& values) const {
  return (is_field_ ? zonal_spectrum(values, weights_) : radial_spectrum(values)).sum(0);
}

void ScoreSums::add_forecast(Forecast& forecast, const at::Tensor& values, const at::Tensor& target, const Points& points) const {
  const at::Tensor p = flat_rows(points.without_holes(values), is_field_);
  const at::Tensor t = flat_rows(points.without_holes(target), is_field_);
  WeightedSums errors = weighted_sums(p, t, weights_);
  errors.weight = points.weight;
  forecast.square_error += errors.square_error.sum(0);
  forecast.rmse += sum_where(points.has_points, weighted_rmse(errors, 0));
  const at::Tensor difference = (p - t) * weights_.view({1, 1, -1, 1});
  forecast.error += difference.sum({2, 3}).sum(0);
  forecast.absolute += at::abs(difference).sum({2, 3}).sum(0);
  accumulate(forecast.spectrum, spectrum_of(values));
  if (!time_mean_.defined() || forecast.name == kMeanMap) return;  // see score_of()
  const at::Tensor mean = flat_rows(time_mean_.unsqueeze(0), is_field_);
  const auto anomaly = [&](const at::Tensor& fields) {
    return points.is_hole.defined() ? (fields - mean).masked_fill(points.is_hole.cpu(), 0) : fields - mean;
  };
  forecast.acc += sum_where(points.has_points, weighted_acc(weighted_sums(anomaly(p), anomaly(t), weights_)));
}

// Undefined if the target's power there is only rounding error.
double ScoreSums::small_scale_ratio(const at::Tensor& spectrum, int64_t channel, int64_t points) const {
  const at::Tensor target = target_spectrum_[channel] / static_cast<double>(samples_);
  const double power = small_scale_power(target, points).item<double>();
  const double least = rounding_power(stored_mean_square(spec_, static_cast<size_t>(channel), target.sum().item<double>()));
  return power > least ? small_scale_power(spectrum, points).item<double>() / power : kUndefined;
}

bool ScoreSums::is_whole(int64_t channel) const {
  const auto& shape = spec_.target.shape;
  const int64_t all = samples_ * std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
  return points_[channel].item<int64_t>() == all;
}

ChannelScore ScoreSums::score_of(const Forecast& forecast, int64_t channel, double scale) const {
  const double weight = weight_[channel].item<double>(), scored = static_cast<double>(scored_[channel].item<int64_t>());
  ChannelScore score;
  score.rmse = std::sqrt(forecast.square_error[channel].item<double>() / weight);
  score.mean_rmse = forecast.rmse[channel].item<double>() / scored;
  score.rmse_physical = score.rmse * std::abs(scale);
  score.mae_physical = forecast.absolute[channel].item<double>() / weight * std::abs(scale);
  score.bias_physical = forecast.error[channel].item<double>() / weight * scale;
  // Of values that are no anomalies the correlation says how far the mean is from zero. The time mean's anomaly is zero
  // everywhere.
  const bool has_anomalies = time_mean_.defined() && forecast.name != kMeanMap;
  score.acc = has_anomalies ? forecast.acc[channel].item<double>() / scored : kUndefined;
  return score;
}

Scores ScoreSums::finish() const {
  Scores scores;
  scores.samples = samples_;
  scores.nonfinite = nonfinite_;
  scores.channels = spec_.target.channels;
  const ChannelUnits shown = target_units(spec_);
  scores.units = shown.units;
  const double n = static_cast<double>(std::max<int64_t>(samples_, 1));
  scores.scored = losses_;
  scores.loss = losses_ == 0 ? kUndefined : loss_ / static_cast<double>(losses_);
  scores.wavenumber = is_field_ ? "zonal" : "radial";
  const auto& shape = spec_.target.shape;
  const int64_t edge = is_field_ ? shape[2] : *std::max_element(shape.begin() + 1, shape.end());
  scores.all_points = samples_ * std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
  const auto has_spectrum = [&](int64_t c) { return target_spectrum_.defined() && is_whole(c); };
  for (int64_t c = 0; c < shape[0]; ++c) {
    scores.points.push_back(points_[c].item<int64_t>());
    scores.target_spectra.push_back(has_spectrum(c) ? to_vector(target_spectrum_[c] / n) : std::vector<double>());
  }
  for (const auto& forecast : forecasts_) {
    ForecastScores row{forecast.name, {}};
    for (int64_t c = 0; c < shape[0]; ++c) {
      ChannelScore score = score_of(forecast, c, shown.scale_of(static_cast<size_t>(c)));
      if (has_spectrum(c)) score.spectrum = to_vector(forecast.spectrum[c] / n);
      score.small_scales = has_spectrum(c) ? small_scale_ratio(forecast.spectrum[c] / n, c, edge) : kUndefined;
      row.channels.push_back(std::move(score));
    }
    scores.forecasts.push_back(std::move(row));
  }
  return scores;
}

}  // namespace welkin::train
