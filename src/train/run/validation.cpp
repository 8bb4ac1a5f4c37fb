// SPDX-License-Identifier: Apache-2.0
#include "train/run/validation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <utility>
#include <vector>

#include "config/schema/batch_plan.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "ops/base/autocast.h"
#include "parallel/comm/collectives.h"
#include "parallel/comm/tree_sum.h"
#include "train/learn/metrics.h"
#include "train/learn/precision.h"
#include "train/run/run_rules.h"
#include "train/step/stages.h"

namespace welkin::train {

namespace {

constexpr int64_t kNumSums = 4;  // of every validation

at::Tensor zero_sums(size_t watched, c10::Device device) {
  return at::zeros({kNumSums + 1 + 2 * static_cast<int64_t>(watched)}, at::TensorOptions(at::kDouble).device(device));
}

model::ForwardContext validation_context(const config::RunConfig& config, const data::Batch& batch) {
  return {.seed = config.loop.seed, .step = at::zeros({}, batch.sample.options()), .sample = batch.sample};
}

}  // namespace

// float64 on the device, read once at the end: sums over samples of loss and RMSE; numbers of samples that have a point with a
// value (a sample without any counts as absent), and whose loss is not finite; the RMSE of the watched channels; the number of
// samples of each RMSE: those in which the channel has a point with a value.
struct Validator::Sums {
  explicit Sums(at::Tensor zeros) : own(std::move(zeros)) {}
  at::Tensor own;
};

data::PipelineOptions pipeline_options(const config::RunConfig& config, const parallel::Group& replicas, c10::Device device,
                                       bool drop_last, const std::optional<data::Region>& region) {
  const config::BatchPlan batch = config::batch_plan(config, replicas.size());
  return {.global_batch = batch.global,
          .micro_batch = batch.micro,
          .shard = replicas.group_rank(),
          .num_shards = replicas.size(),
          .drop_last = drop_last,
          .shard_rule = config.rules.shard_rule,
          .num_workers = config.data.num_data_workers,
          .prefetch_depth = config.data.prefetch_depth,
          .device = device,
          .persistent_workers = config.data.persistent_workers,
          .pin_memory = config.data.pin_memory,
          .resident = config.data.resident == config::Residence::Device && !device.is_cpu(),
          .non_blocking = config.data.non_blocking,
          .rules = {.bad_sample = config.data.bad_samples, .nan = config.data.nan_policy},
          .stall_seconds = config.data.read_stall_seconds,
          .report = {},
          .stalled = {},
          .agree = {},
          .region = region};
}

namespace {

[[noreturn]] void refuse_no_points(const char* part) {
  throw DataError("train", cat("no point of the ", part, "'s targets has a value, so there is nothing to compare with"),
                  "Look at the fill values and masks of these files: welkin data inspect says how many points have none");
}

data::PipelineOptions validation_options(const config::RunConfig& config, const parallel::Group& replicas,
                                         const SampleShard& shard, c10::Device device, const ReadingEvents& events) {
  data::PipelineOptions options = pipeline_options(config, replicas, device, validation_drops_last(config), shard.region());
  events.add_to(options);
  return options;
}

}  // namespace

Validator::Validator(const data::Dataset& dataset, TrainSetup& setup, const config::RunConfig& config, c10::Device device,
                     const ReadingEvents& events)
    : setup_(setup),
      config_(config),
      replicas_(setup.layout.replicas),
      shard_(setup.layout.shard),
      device_(device),
      pipeline_(dataset, data::Sampler(dataset.size(), validation_order(config, replicas_.size()), config.loop.seed),
                validation_options(config, replicas_, shard_, device, events)) {
  const data::SampleSpec& spec = dataset.spec();
  watched_ = watched_channels(config, spec);
  has_holes_ = data::nan_policy_for(spec, config.data.nan_policy) == data::NanPolicy::Hole;
  if (spec.target.shape.size() == 3) weights_ = row_weights(spec).to(device, at::kFloat);
}

double value_of(const ValidationReport& report, const ValidationMetric& metric) {
  if (!metric.channel) return report.loss;
  if (*metric.channel == 0) return report.first_channel_rmse.value();
  for (const auto& [channel, rmse] : report.watched_rmse) {
    if (channel == *metric.channel) return rmse;
  }
  throw InternalError(cat("the validation did not look at ", metric.name));
}

int64_t Validator::rmse_samples(int64_t place) const {
  const auto watched = static_cast<int64_t>(watched_.size());
  return place == 1 ? kNumSums + watched : place + watched + 1;
}

at::Tensor Validator::batch_sums(const data::Batch& batch, config::AmpMode mode) const {
  const at::NoGradGuard no_grad;
  const ops::AutocastGuard autocast(device_.type(), autocast_dtype(mode));
  if (batch.input.size(0) == 0) {  // a short last step may leave a rank without samples
    if (setup_.joins_passes()) setup_.forward_zeros(batch.input);
    return zero_sums(watched_.size(), device_);
  }
  return sums_of(setup_.forward(batch.input, validation_context(config_, batch)), batch);
}

at::Tensor Validator::sums_of(const at::Tensor& prediction, const data::Batch& batch) const {
  at::Tensor sums = zero_sums(watched_.size(), device_);
  // Sums over samples, or over batch means.
  const double share = validation_averages_batches(config_) ? static_cast<double>(batch.step_samples) : 1.0;
  const at::Tensor losses = shard_.losses(*setup_.loss, prediction, batch.target);
  sums[0].copy_(losses.sum().to(at::kDouble) / share);
  sums[3].copy_(at::isfinite(losses).logical_not().sum());
  if (has_holes_) {
    sums[2].copy_(shard_.has_points(batch.target).sum().to(at::kDouble) / share);
  } else {
    sums[2].fill_(static_cast<double>(batch.input.size(0)) / share);
  }
  if (!weights_.defined()) return sums;
  const auto add_rmse = [&](int64_t place, int64_t channel) {
    const at::Tensor p = prediction.narrow(1, channel, 1), t = batch.target.narrow(1, channel, 1);
    const int64_t samples = rmse_samples(place);
    if (!has_holes_) {
      sums[place].copy_(shard_.rmse(p, t, weights_).sum().to(at::kDouble) / share);
      sums[samples].copy_(sums[2]);
      return;
    }
    const SampleShard::PointsRmse points = shard_.rmse_of_points(p, t, weights_);
    sums[place].copy_(points.rmse.sum().to(at::kDouble) / share);
    sums[samples].copy_(points.has_points.sum().to(at::kDouble) / share);
  };
  add_rmse(1, 0);
  for (size_t i = 0; i < watched_.size(); ++i) add_rmse(kNumSums + static_cast<int64_t>(i), watched_[i]);
  return sums;
}

// Sums over the ranks in one message, then the means.
ValidationReport Validator::report(Sums& sums, double seconds) const {
  const bool is_shared = config_.parallel.rank_invariant;  // each step's sum is the same on all ranks already
  const at::Tensor total = (is_shared ? sums.own : parallel::all_reduce(replicas_, sums.own)).cpu();
  const double weight = total[2].item<double>();
  ValidationReport report{.loss = total[0].item<double>() / weight,
                          .first_channel_rmse = {},
                          .seconds = seconds,
                          .nonfinite = total[3].item<int64_t>()};
  const auto rmse_at = [&](int64_t place) { return total[place].item<double>() / total[rmse_samples(place)].item<double>(); };
  if (weights_.defined()) report.first_channel_rmse = rmse_at(1);
  for (size_t i = 0; i < watched_.size(); ++i) {
    report.watched_rmse.emplace_back(watched_[i], rmse_at(kNumSums + static_cast<int64_t>(i)));
  }
  return report;
}

// Passes the micro-batches of one step in a row. The last stage has the sums and sends them to the others.
void Validator::add_pipeline_step(Sums& sums, config::AmpMode mode) {
  const at::NoGradGuard no_grad;
  const ops::AutocastGuard autocast(device_.type(), autocast_dtype(mode));
  std::vector<data::Batch> batches{kept(pipeline_.next())};  // a loader's buffers are valid until the call after next
  while (batches.back().micro + 1 < batches.back().num_micro) batches.push_back(kept(pipeline_.next()));
  const data::Batch nothing = batches.back();
  if (nothing.input.size(0) == 0) batches.clear();
  const auto own = static_cast<int64_t>(batches.size());
  const auto own_batch = [&](int64_t micro) -> const data::Batch& { return batches[static_cast<size_t>(micro)]; };
  at::Tensor step_sums = zero_sums(watched_.size(), device_);
  setup_.pipeline->forward(
      parallel::PipelineForward{.micros = setup_.joint_passes(own),
                                .samples = [&](int64_t micro) { return micro < own ? own_batch(micro).input.size(0) : 1; },
                                .batch = [&](int64_t micro) -> parallel::PipelineBatch {
                                  if (micro >= own) return zero_micro_batch(nothing, config_.loop.seed, setup_.counter);
                                  return {own_batch(micro).input, validation_context(config_, own_batch(micro))};
                                },
                                .on_output =
                                    [&](int64_t micro, const at::Tensor& output) {
                                      if (micro < own) step_sums += sums_of(output, own_batch(micro));
                                    }});
  const parallel::Group& stages = setup_.layout.groups.along(parallel::Axis::Pp);
  parallel::broadcast(stages, step_sums, stages.size() - 1);
  sums.own += step_sums;
}

// Adds all micro-batches of one step.
void Validator::add_step(Sums& sums, config::AmpMode mode) {
  if (setup_.pipeline) return add_pipeline_step(sums, mode);
  parallel::TreeSum units(replicas_);
  data::Batch batch = pipeline_.next();
  // Before the first pass: what it gathers are calls of the same group.
  const int64_t passes = setup_.joint_passes(batch.num_micro);
  for (bool is_last = false; !is_last;) {
    const at::Tensor unit = batch_sums(batch, mode);
    if (config_.parallel.rank_invariant) {
      units.add({unit});
    } else {
      sums.own += unit;
    }
    is_last = batch.micro + 1 >= batch.num_micro;
    if (!is_last) batch = pipeline_.next();
  }
  const at::NoGradGuard no_grad;
  for (int64_t pass = batch.num_micro; pass < passes; ++pass) setup_.forward_zeros(batch.input);
  if (config_.parallel.rank_invariant) sums.own += units.finish().front();
}

std::optional<ValidationReport> Validator::run(int64_t epoch, const std::function<bool()>& stop) {
  const Stopwatch watch;
  setup_.model->eval();
  Sums sums(zero_sums(watched_.size(), device_));
  const int64_t steps = pipeline_.steps_per_epoch();
  const int64_t first = consumes_first_batch(config_) && epoch == 0 ? 1 : 0;
  int64_t step = first;
  if (step < steps) pipeline_.resume({.epoch = epoch, .step = step});
  for (; step < steps && !stop(); ++step) add_step(sums, config_.precision.amp_mode);
  setup_.model->train();
  if (step < steps) return {};
  ValidationReport found = report(sums, watch.seconds());
  if (has_holes_ && first < steps && std::isnan(found.loss) && found.nonfinite == 0) refuse_no_points("validation");
  return found;
}

void Validator::check_trained(double loss) const {
  if (has_holes_ && loss == 0) refuse_no_points("training");
}

// The samples of the first batch may have no point although others have: then its loss is NaN.
ValidationReport Validator::first_batch() {
  Sums sums(zero_sums(watched_.size(), device_));
  pipeline_.resume({.epoch = 0, .step = 0});
  add_step(sums, config::AmpMode::None);
  return report(sums, 0);
}

}  // namespace welkin::train
