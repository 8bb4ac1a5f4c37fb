// SPDX-License-Identifier: Apache-2.0
#include "train/validation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "core/stopwatch.h"
#include "ops/autocast.h"
#include "train/metrics.h"
#include "train/precision.h"
#include "train/run_rules.h"

namespace welkin::train {

// On the device: reading them waits only once, at the end.
struct Validator::Sums {
  explicit Sums(c10::Device device)
      : loss(at::zeros({}, at::TensorOptions(at::kDouble).device(device))), rmse(at::zeros_like(loss)) {}
  at::Tensor loss, rmse;
  double weight = 0;  // samples, or batches
};

namespace {

data::SampleRules sample_rules(const config::DataConfig& config) {
  using data::NanPolicy;
  const std::string& nan = config.nan_policy;
  return {.bad_sample = config.bad_samples == "skip" ? data::BadSample::Skip : data::BadSample::Error,
          .nan = nan == "error"    ? NanPolicy::Error
                 : nan == "mask"   ? NanPolicy::Mask
                 : nan == "report" ? NanPolicy::Report
                                   : NanPolicy::Off};
}

}  // namespace

data::PipelineOptions pipeline_options(const config::RunConfig& config, c10::Device device, bool drop_last) {
  const int64_t local = config.loop.global_batch_size;
  const int64_t micro = config.loop.micro_batch_size;
  return {.global_batch = local,
          .micro_batch = micro > 0 ? std::min(micro, local) : local,
          .drop_last = drop_last,
          .dealing = data::parse_dealing(config.rules.shard_rule),
          .num_workers = config.data.num_data_workers,
          .prefetch_depth = config.data.prefetch_depth,
          .device = device,
          .persistent_workers = config.data.persistent_workers,
          .pin_memory = config.data.pin_memory,
          .non_blocking = config.data.non_blocking,
          .rules = sample_rules(config.data),
          .stall_seconds = config.data.read_stall_seconds,
          .report = {},
          .region = {}};
}

Validator::Validator(const data::Dataset& dataset, model::Model& model, const Loss& loss, const config::RunConfig& config,
                     c10::Device device)
    : dataset_(dataset),
      model_(model),
      loss_(loss),
      config_(config),
      device_(device),
      pipeline_(dataset, data::Sampler(dataset.size(), validation_order(config, /*num_shards=*/1), config.loop.seed),
                pipeline_options(config, device, validation_drops_last(config))) {
  const data::SampleSpec& spec = dataset.spec();
  if (spec.target.shape.size() == 3) weights_ = latitude_weights(spec.target.shape[1], spec.latitude).to(device, at::kFloat);
}

void Validator::add_batch(Sums& sums, const data::Batch& batch, config::AmpMode mode) const {
  const at::NoGradGuard no_grad;
  const ops::AutocastGuard autocast(device_.type(), autocast_dtype(mode));
  const at::Tensor prediction = model_.forward(
      batch.input, {.seed = config_.loop.seed, .step = at::zeros({}, batch.sample.options()), .sample = batch.sample});
  // A sum over samples, or over the means of batches.
  const double share = validation_averages_batches(config_) ? static_cast<double>(batch.step_samples) : 1.0;
  sums.loss += loss_.per_sample(prediction, batch.target).sum().to(at::kDouble) / share;
  sums.weight += static_cast<double>(batch.input.size(0)) / share;
  if (!weights_.defined()) return;
  const auto first = [](const at::Tensor& values) { return values.narrow(1, 0, 1); };
  const WeightedSums errors = weighted_sums(first(prediction), first(batch.target), weights_);
  sums.rmse += weighted_rmse(errors, batch.target.size(2) * batch.target.size(3)).sum().to(at::kDouble) / share;
}

ValidationReport Validator::report(const Sums& sums, double seconds) const {
  ValidationReport report{.loss = sums.loss.item<double>() / sums.weight, .first_channel_rmse = {}, .seconds = seconds};
  if (weights_.defined()) report.first_channel_rmse = sums.rmse.item<double>() / sums.weight;
  return report;
}

std::optional<ValidationReport> Validator::run(int64_t epoch, const std::function<bool()>& stop) {
  const Stopwatch watch;
  model_.eval();
  Sums sums(device_);
  const int64_t steps = pipeline_.steps_per_epoch();
  int64_t step = consumes_first_batch(config_) && epoch == 0 ? 1 : 0;
  if (step < steps) pipeline_.resume({.epoch = epoch, .step = step});
  while (step < steps && !stop()) {
    const data::Batch batch = pipeline_.next();
    add_batch(sums, batch, config_.precision.amp_mode);
    if (batch.micro + 1 == batch.num_micro) ++step;
  }
  model_.train();
  if (step < steps) return {};
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
