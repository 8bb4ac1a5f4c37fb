// SPDX-License-Identifier: Apache-2.0
// Scores of a model over a whole data set, each sample once, next to two baselines: persistence (the input state as forecast)
// and the time-mean map of the training data. Sums are double on the host, since scoring is not a hot path.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/sample/dataset.h"
#include "parallel/comm/group.h"
#include "train/evaluate/persistence.h"

namespace welkin::train {

// Scores of one channel and one forecast. Normalised units: divided by the data set's standard deviation. NaN: not defined.
struct ChannelScore {
  double rmse = 0;           // root of the (latitude-weighted) mean square error over all samples and points
  double mean_rmse = 0;      // mean over the samples of their own RMSE, as the tutorials log it
  double rmse_physical = 0;  // rmse in the channel's unit (channel_units.h): times all deviations and scales that were taken
  double mae_physical = 0;   // (latitude-weighted) mean absolute error, in the channel's unit
  double bias_physical = 0;  // (latitude-weighted) mean error, in the channel's unit
  double small_scales = 0;   // power above half of the Nyquist wavenumber over the target's, which may have none
  std::vector<double> spectrum{};  // normalised mean square by wavenumber, mean over the samples (metrics_spectrum.h)
  double acc = 0;                  // anomaly correlation against the time-mean map, mean over the samples; NaN without a map
};

struct ForecastScores {
  std::string name;                    // "model", "persistence", "time mean"
  std::vector<ChannelScore> channels;  // one per target channel
  double rmse() const;                 // root mean square of the channels' rmse: one number, normalised
};

struct Scores {
  int64_t samples = 0;
  int64_t scored = 0;                // samples that have a point with a value
  double loss = 0;                   // mean over the samples that have a point with a value; NaN where none has
  std::vector<int64_t> nonfinite{};  // samples whose loss is not finite, counted from 0 in the order in which they were added
  std::vector<std::string> channels, units;           // those of channel_units.h
  std::string wavenumber;                             // of the spectra: "zonal" for fields, "radial" for boxes
  std::vector<std::vector<double>> target_spectra{};  // one per target channel
  std::vector<int64_t> points{};                      // of each target channel, over all samples: those with a value
  int64_t all_points = 0;                             // the same with and without
  std::vector<ForecastScores> forecasts;              // the model first
};

class ScoreSums {
 public:
  // `time_mean` (C, H, W) normalised, on the CPU, or undefined: then there is no such forecast. Persistence is scored for fields
  // whose newest input step holds channels of the target. `holes`: where the target is NaN there is no value; such points count
  // in no score, and a channel that has some has no spectrum.
  ScoreSums(const data::SampleSpec& spec, at::Tensor time_mean, bool holes = false);
  ~ScoreSums();
  ScoreSums(ScoreSums&&) noexcept;

  // input (B, C, ...), target and prediction (B, C', ...), losses (B), any device.
  void add(const at::Tensor& input, const at::Tensor& target, const at::Tensor& prediction, const at::Tensor& losses);

  // Adds the sums of members that added different samples, in their order. Every member calls it, then finish().
  void add_up(const parallel::Group& replicas);

  Scores finish() const;

 private:
  struct Forecast;
  struct Points;
  Points points_of(const at::Tensor& target) const;
  void add_forecast(Forecast& forecast, const at::Tensor& values, const at::Tensor& target, const Points& points) const;
  ChannelScore score_of(const Forecast& forecast, int64_t channel, double scale) const;
  bool is_whole(int64_t channel) const;                    // every point has a value
  at::Tensor spectrum_of(const at::Tensor& values) const;  // (C, K) sum over samples
  double small_scale_ratio(const at::Tensor& spectrum, int64_t channel, int64_t points) const;
  std::vector<at::Tensor*> float_sums();

  const data::SampleSpec& spec_;
  std::optional<Persistence> persistence_;  // nothing where there is no earlier state
  at::Tensor time_mean_;
  at::Tensor weights_;          // (H) of the rows
  at::Tensor target_spectrum_;  // (C, K) float64 sum over samples; undefined before the first
  bool is_field_, holes_;
  at::Tensor points_;  // (C) int64, those with a value, sum over samples
  at::Tensor weight_;  // (C) float64, of these points, sum over samples
  at::Tensor scored_;  // (C) int64, samples in which there is such a point
  int64_t samples_ = 0;
  double loss_ = 0;
  int64_t losses_ = 0;  // samples with a point
  std::vector<int64_t> nonfinite_;
  std::vector<Forecast> forecasts_;
};

// DataError if the target of none of these (leads, or a single one) has a point with a value.
void check_has_points(const std::vector<Scores>& leads);

}  // namespace welkin::train
