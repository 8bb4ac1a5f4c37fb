// SPDX-License-Identifier: Apache-2.0
#include "train/learn/loss_terms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/fft_rfft.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/square.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "config/draft/channel_settings.h"
#include "core/error.h"
#include "core/text.h"
#include "data/pipeline/sample_check.h"
#include "train/learn/metrics.h"

namespace welkin::train {
namespace {

// Columns: those of the loss; for each channel the weighted sum of the error and the sum of the weights; the spectral
// error.
class LossWithTerms : public Loss {
 public:
  LossWithTerms(LossPtr loss, LossTerms terms) : loss_(std::move(loss)), terms_(std::move(terms)) {}

  at::Tensor partial(const at::Tensor& prediction, const at::Tensor& target) const override {
    return partial_from(0, prediction, target);
  }

  at::Tensor partial_from(int64_t row, const at::Tensor& prediction, const at::Tensor& target) const override {
    std::vector<at::Tensor> columns{loss_->partial_from(row, prediction, target)};
    const at::Tensor t = widen(target), p = widen(prediction);
    const at::Tensor is_hole = terms_.holes ? at::isnan(t) : at::Tensor();
    const auto at_points = [&](const at::Tensor& values) { return is_hole.defined() ? values.masked_fill(is_hole, 0) : values; };
    if (terms_.conservation.defined()) {
      const at::Tensor weight = at_points(rows_at(row, t).expand_as(t));
      columns.push_back((weight * at_points(p - t)).flatten(2).sum(2));
      columns.push_back(weight.flatten(2).sum(2));
    }
    if (terms_.spectral > 0) columns.push_back(spectral_error(at_points(p), at_points(t), rows_at(row, t)));
    return at::cat(columns, 1);
  }

  at::Tensor finish(const at::Tensor& sums) const override {
    const int64_t channels = terms_.conservation.defined() ? terms_.conservation.size(0) : 0;
    const int64_t own = sums.size(1) - 2 * channels - (terms_.spectral > 0 ? 1 : 0);
    at::Tensor losses = loss_->finish(sums.narrow(1, 0, own));
    if (channels > 0) {
      const at::Tensor weight = at::clamp_min(sums.narrow(1, own + channels, channels), std::numeric_limits<float>::min());
      const at::Tensor mean = sums.narrow(1, own, channels) / weight;
      losses = losses + (terms_.conservation.to(sums.scalar_type()) * at::square(mean)).sum(1);
    }
    if (terms_.spectral > 0) losses = losses + terms_.spectral * sums.select(1, sums.size(1) - 1);
    return losses;
  }

 private:
  // (1, 1, H, 1): the weights of the rows of `like`.
  at::Tensor rows_at(int64_t row, const at::Tensor& like) const {
    return terms_.rows.narrow(0, row, like.size(2)).to(like.scalar_type()).view({1, 1, like.size(2), 1});
  }

  // (B, C, W / 2 + 1): square roots of the power at each wavenumber. Wavenumbers between the mean and the last stand for two.
  // The clamp keeps the root's gradient finite at power 0.
  static at::Tensor amplitudes(const at::Tensor& fields, const at::Tensor& rows) {
    const int64_t points = fields.size(3);
    const auto width = static_cast<double>(points);
    at::Tensor times = at::full({points / 2 + 1}, 2.0, rows.options());
    times.select(0, 0).fill_(1.0);
    if (points % 2 == 0) times.select(0, points / 2).fill_(1.0);
    const at::Tensor power = at::square(at::abs(at::fft_rfft(fields))).mul(rows).mean(2).mul(times / (width * width));
    return at::clamp_min(power, std::numeric_limits<float>::min()).sqrt();
  }

  static at::Tensor spectral_error(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& rows) {
    const at::Tensor error = at::square(amplitudes(prediction, rows) - amplitudes(target, rows)).sum(2);
    return error.mean(1, /*keepdim=*/true);
  }

  LossPtr loss_;
  LossTerms terms_;
};

std::vector<double> conservation_weights(const config::RunConfig& config, const data::SampleSpec& spec) {
  std::vector<double> weights;
  for (const auto& given : config::number_settings_of(config.loss.conservation, "conservation", spec.target.channels)) {
    weights.push_back(given.value_or(0.0));
    if (weights.back() >= 0) continue;
    throw ConfigError("loss",
                      cat("a negative weight: key=conservation, channel=", spec.target.channels[weights.size() - 1],
                          ", weight=", weights.back()),
                      "Give a weight of at least 0");
  }
  return weights;
}

}  // namespace

LossTerms loss_terms(const config::RunConfig& config, const data::SampleSpec& spec, c10::Device device) {
  LossTerms terms;
  if (spec.target.shape.size() != 3) return terms;
  terms.spectral = config.loss.spectral_weight;
  if (!config.loss.conservation.empty())
    terms.conservation = at::tensor(conservation_weights(config, spec), at::kDouble).to(device);
  if (!terms.any()) return terms;
  terms.rows = row_weights(spec).to(device);
  terms.holes = data::nan_policy_for(spec, config.data.nan_policy) == data::NanPolicy::Hole;
  return terms;
}

LossPtr with_terms(LossPtr loss, LossTerms terms) {
  if (!terms.any()) return loss;
  return std::make_unique<LossWithTerms>(std::move(loss), std::move(terms));
}

}  // namespace welkin::train
