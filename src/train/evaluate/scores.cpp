// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "train/evaluate/channel_units.h"
#include "train/learn/metrics.h"
#include "train/learn/metrics_spectrum.h"

namespace welkin::train {

struct ScoreSums::Forecast {
  std::string name;
  at::Tensor square_error;     // (C) float64 sum over samples of the weighted mean square error
  at::Tensor rmse;             // (C) float64 sum over samples of their RMSE
  at::Tensor acc;              // (C) float64 sum over samples of their anomaly correlation
  at::Tensor absolute, error;  // (C) float64 sums over samples of the weighted mean of |error| and of the error
  at::Tensor spectrum{};       // (C, K) float64 sum over samples; undefined before the first
};

namespace {

constexpr const char* kMeanMap = "time mean";
constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// What rounding to float32 leaves at every scale of values whose mean square is this.
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

// Boxes have no latitude: every row weighs the same.
at::Tensor row_weights(const data::SampleSpec& spec, bool is_field) {
  const auto& shape = spec.target.shape;
  if (is_field) return latitude_weights(shape[1], spec.latitude);
  return at::ones({shape[1] * shape[2]}, at::kDouble);
}

at::Tensor flat_rows(const at::Tensor& values, bool is_field) {
  const at::Tensor wide = values.to(at::kCPU, at::kDouble);
  return is_field ? wide : fold_rows(wide);
}

void accumulate(at::Tensor& sum, const at::Tensor& more) { sum = sum.defined() ? sum + more : more; }

std::vector<double> to_vector(const at::Tensor& values) {
  const at::Tensor flat = values.contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

}  // namespace

std::vector<int64_t> earlier_channels(const data::SampleSpec& spec) {
  if (!spec.earlier_target.empty()) return spec.earlier_target;
  std::vector<int64_t> channels(static_cast<size_t>(spec.target.shape.at(0)));
  std::iota(channels.begin(), channels.end(), spec.newest_input_channel);
  return channels;
}

bool has_persistence(const data::SampleSpec& spec) {
  const auto& input = spec.input.shape;
  const auto& target = spec.target.shape;
  if (std::ranges::count(spec.earlier_target, -1) > 0) return false;
  return spec.geometry != data::Geometry::PeriodicBox && input.size() == 3 &&
         (!spec.earlier_target.empty() || spec.newest_input_channel + target[0] <= input[0]);
}

double ForecastScores::rmse() const {
  double sum = 0;
  for (const auto& channel : channels) sum += channel.rmse * channel.rmse;
  return channels.empty() ? 0 : std::sqrt(sum / static_cast<double>(channels.size()));
}

ScoreSums::ScoreSums(const data::SampleSpec& spec, at::Tensor time_mean)
    : spec_(spec), time_mean_(std::move(time_mean)), is_field_(spec.target.shape.size() == 3) {
  weights_ = row_weights(spec, is_field_);
  std::vector<std::string> names = {"model"};
  if (has_persistence(spec)) names.emplace_back("persistence");
  if (time_mean_.defined()) names.emplace_back(kMeanMap);
  for (auto& name : names) {
    const auto zero = [&] { return at::zeros({spec.target.shape[0]}, at::kDouble); };
    forecasts_.push_back({name, zero(), zero(), zero(), zero(), zero()});
  }
}

ScoreSums::~ScoreSums() = default;
ScoreSums::ScoreSums(ScoreSums&&) noexcept = default;

void ScoreSums::add(const at::Tensor& input, const at::Tensor& target, const at::Tensor& prediction, const at::Tensor& losses) {
  for (auto& forecast : forecasts_) {
    if (forecast.name == "model") add_forecast(forecast, prediction, target);
    if (forecast.name == "persistence") {
      add_forecast(forecast, input.index_select(1, at::tensor(earlier_channels(spec_), input.options().dtype(at::kLong))),
                   target);
    }
    if (forecast.name == kMeanMap) add_forecast(forecast, time_mean_.unsqueeze(0).expand_as(target), target);
  }
  accumulate(target_spectrum_, spectrum_of(target));
  const at::Tensor on_host = losses.to(at::kCPU, at::kDouble);
  const std::vector<double> each = to_vector(on_host);
  for (size_t i = 0; i < each.size(); ++i) {
    if (!std::isfinite(each[i])) nonfinite_.push_back(samples_ + static_cast<int64_t>(i));
  }
  samples_ += target.size(0);
  loss_ += on_host.sum().item<double>();
}

at::Tensor ScoreSums::spectrum_of(const at::Tensor& values) const {
  return (is_field_ ? zonal_spectrum(values, weights_) : radial_spectrum(values)).sum(0);
}

void ScoreSums::add_forecast(Forecast& forecast, const at::Tensor& values, const at::Tensor& target) const {
  const at::Tensor p = flat_rows(values, is_field_);
  const at::Tensor t = flat_rows(target, is_field_);
  const int64_t points = p.size(2) * p.size(3);
  const WeightedSums errors = weighted_sums(p, t, weights_);
  forecast.square_error += (errors.square_error / static_cast<double>(points)).sum(0);
  forecast.rmse += weighted_rmse(errors, points).sum(0);
  const at::Tensor difference = (p - t) * weights_.view({1, 1, -1, 1});
  forecast.error += difference.mean({2, 3}).sum(0);
  forecast.absolute += at::abs(difference).mean({2, 3}).sum(0);
  accumulate(forecast.spectrum, spectrum_of(values));
  if (!time_mean_.defined()) {
    forecast.acc += weighted_acc(errors).sum(0);
    return;
  }
  if (forecast.name == kMeanMap) return;  // see finish()
  const at::Tensor mean = flat_rows(time_mean_.unsqueeze(0), is_field_);
  forecast.acc += weighted_acc(weighted_sums(p - mean, t - mean, weights_)).sum(0);
}

// Undefined where the target has no power there but for roundings.
double ScoreSums::small_scale_ratio(const at::Tensor& spectrum, int64_t channel, int64_t points) const {
  const at::Tensor target = target_spectrum_[channel] / static_cast<double>(samples_);
  const double power = small_scale_power(target, points).item<double>();
  const double least = rounding_power(stored_mean_square(spec_, static_cast<size_t>(channel), target.sum().item<double>()));
  return power > least ? small_scale_power(spectrum, points).item<double>() / power : kUndefined;
}

Scores ScoreSums::finish() const {
  Scores scores;
  scores.samples = samples_;
  scores.nonfinite = nonfinite_;
  scores.channels = spec_.target.channels;
  const ChannelUnits shown = target_units(spec_);
  scores.units = shown.units;
  const double n = static_cast<double>(std::max<int64_t>(samples_, 1));
  scores.loss = loss_ / n;
  scores.wavenumber = is_field_ ? "zonal" : "radial";
  const auto& shape = spec_.target.shape;
  const int64_t points = is_field_ ? shape[2] : *std::max_element(shape.begin() + 1, shape.end());
  const bool any = target_spectrum_.defined();
  for (int64_t c = 0; any && c < shape[0]; ++c) scores.target_spectra.push_back(to_vector(target_spectrum_[c] / n));
  for (const auto& forecast : forecasts_) {
    ForecastScores row{forecast.name, {}};
    for (int64_t c = 0; c < forecast.rmse.size(0); ++c) {
      ChannelScore score;
      score.rmse = std::sqrt(forecast.square_error[c].item<double>() / n);
      score.mean_rmse = forecast.rmse[c].item<double>() / n;
      const double scale = shown.scale_of(static_cast<size_t>(c));
      score.rmse_physical = score.rmse * std::abs(scale);
      score.mae_physical = forecast.absolute[c].item<double>() / n * std::abs(scale);
      score.bias_physical = forecast.error[c].item<double>() / n * scale;
      // The time mean's anomaly is zero everywhere: no correlation to speak of.
      score.acc = forecast.name == kMeanMap ? kUndefined : forecast.acc[c].item<double>() / n;
      if (any) {
        score.spectrum = to_vector(forecast.spectrum[c] / n);
        score.small_scales = small_scale_ratio(forecast.spectrum[c] / n, c, points);
      }
      row.channels.push_back(score);
    }
    scores.forecasts.push_back(std::move(row));
  }
  return scores;
}

}  // namespace welkin::train
