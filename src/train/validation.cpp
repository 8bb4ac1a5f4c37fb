// SPDX-License-Identifier: Apache-2.0
#include "train/validation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "core/stopwatch.h"
#include "ops/autocast.h"
#include "train/metrics.h"
#include "train/precision.h"

namespace welkin::train {

// On the device: reading them waits only once, at the end.
struct Validator::Sums {
  explicit Sums(c10::Device device)
      : loss(at::zeros({}, at::TensorOptions(at::kDouble).device(device))), rmse(at::zeros_like(loss)) {}
  at::Tensor loss, rmse;
  int64_t samples = 0;
};

data::PipelineOptions pipeline_options(const config::RunConfig& config, c10::Device device, bool drop_last) {
  const int64_t local = config.loop.global_batch_size;
  const int64_t micro = config.loop.micro_batch_size;
  return {.global_batch = local,
          .micro_batch = micro > 0 ? std::min(micro, local) : local,
          .drop_last = drop_last,
          .num_workers = config.data.num_data_workers,
          .prefetch_depth = config.data.prefetch_depth,
          .device = device,
          .region = {}};
}

Validator::Validator(const data::Dataset& dataset, model::Model& model, const Loss& loss, const config::RunConfig& config,
                     c10::Device device)
    : dataset_(dataset),
      model_(model),
      loss_(loss),
      config_(config),
      device_(device),
      pipeline_(dataset, data::Sampler(dataset.size(), data::Order::Sequential, config.loop.seed),
                pipeline_options(config, device, /*drop_last=*/false)) {
  const data::SampleSpec& spec = dataset.spec();
  if (spec.target.shape.size() == 3) weights_ = latitude_weights(spec.target.shape[1], spec.latitude).to(device, at::kFloat);
}

void Validator::add_batch(Sums& sums, const data::Batch& batch, config::AmpMode mode) const {
  const at::NoGradGuard no_grad;
  const ops::AutocastGuard autocast(device_.type(), autocast_dtype(mode));
  const at::Tensor prediction = model_.forward(
      batch.input, {.seed = config_.loop.seed, .step = at::zeros({}, batch.sample.options()), .sample = batch.sample});
  sums.loss += loss_.per_sample(prediction, batch.target).sum().to(at::kDouble);
  sums.samples += batch.input.size(0);
  if (!weights_.defined()) return;
  const auto first = [](const at::Tensor& values) { return values.narrow(1, 0, 1); };
  const WeightedSums errors = weighted_sums(first(prediction), first(batch.target), weights_);
  sums.rmse += weighted_rmse(errors, batch.target.size(2) * batch.target.size(3)).sum().to(at::kDouble);
}

ValidationReport Validator::report(const Sums& sums, double seconds) const {
  const auto n = static_cast<double>(sums.samples);
  ValidationReport report{.loss = sums.loss.item<double>() / n, .first_channel_rmse = {}, .seconds = seconds};
  if (weights_.defined()) report.first_channel_rmse = sums.rmse.item<double>() / n;
  return report;
}

std::optional<ValidationReport> Validator::run(const std::function<bool()>& stop) {
  const Stopwatch watch;
  model_.eval();
  Sums sums(device_);
  pipeline_.resume({.epoch = 0, .step = 0});
  while (sums.samples < dataset_.size()) {
    if (stop()) break;
    add_batch(sums, pipeline_.next(), config_.precision.amp_mode);
  }
  model_.train();
  if (sums.samples < dataset_.size()) return {};
  return report(sums, watch.seconds());
}

ValidationReport Validator::first_batch() {
  Sums sums(device_);
  pipeline_.resume({.epoch = 0, .step = 0});
  int64_t num_micro = 1;
  for (int64_t micro = 0; micro < num_micro; ++micro) {
    const data::Batch batch = pipeline_.next();
    num_micro = batch.num_micro;
    add_batch(sums, batch, config::AmpMode::None);
  }
  return report(sums, 0);
}

}  // namespace welkin::train
