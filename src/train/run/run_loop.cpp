// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_loop.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <optional>

#include "config/schema/early_stopping.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "observe/log/progress.h"
#include "parallel/comm/collectives.h"
#include "parallel/shard/model_parallel_gradients.h"
#include "train/learn/input_check.h"
#include "train/monitor/step_log.h"
#include "train/optim/weight_average.h"
#include "train/rollout/curriculum.h"
#include "train/run/run_rules.h"
#include "train/step/step_graph.h"

namespace welkin::train {
namespace {

std::function<void(at::Tensor&, at::Tensor&)> losses_of(FaultInjector* faults) {
  if (faults == nullptr || !faults->changes_losses()) return {};
  return [faults](at::Tensor& loss, at::Tensor& scaled) { faults->change_losses(loss, scaled); };
}

}  // namespace

RunLoop::RunLoop(const LoopParts& parts)
    : context_(parts.context),
      config_(context_.resolved.config),
      parts_(parts),
      state_(parts.state),
      nonfinite_(
          config_.loop.on_nonfinite, [this](const std::string& event) { context_.log.warning(event); },
          [this] { return parts_.checkpoints.newest(); },
          [this](const StepRecord& record) {
            return parts_.data.first_nonfinite({record.epoch, record.step});
          },
          [this](const StepRecord& record) { return parts_.data.samples_of(record); },
          [this](const std::string& event, const StepRecord& record) { note_nonfinite(event, record); }),
      best_metric_(best_metric(config_, parts.data.valid().spec())),
      stopping_metric_(early_stopping_metric(config_, parts.data.valid().spec())) {
  std::string problem;
  if (const auto rule = config::parse_early_stopping(config_.loop.early_stopping, problem)) {
    early_stop_.emplace(*rule, stopping_metric_->name, state_.early_stop);
  }
  const auto on_forward = [this](const data::Batch& batch, const at::Tensor& prediction) {
    if (auto* const replay = parts_.data.replay()) replay->keep(batch, prediction);
    if (auto picture = parts_.report.on_forward(batch, prediction)) state_.picture = std::move(picture);
  };
  step_ = make_step(parts_.setup, config_,
                    {.device = parts_.device,
                     .world_group = context_.world.world_group(),
                     .dataset_size = parts_.data.samples().size(),
                     .tracer = &parts_.profile.tracer(),
                     .pending_notes = [this] { return static_cast<double>(parts_.data.notes().num_waiting()); },
                     .files_written = [this] { return parts_.checkpoints.has_written(); },
                     .others_wait = [this] { return others_wait(); },
                     .on_forward = on_forward,
                     .wants_forward = [this](const data::Batch& /*batch*/) { return parts_.report.wants_forward(); },
                     .change_losses = losses_of(context_.faults),
                     .recorder = graph_recorder(config_, parts_.device)});
}

RunProgress RunLoop::reached() const {
  return {.step = state_.position.iteration, .total_steps = state_.length.total_steps, .epoch = state_.position.epoch + 1};
}

ReachedStep RunLoop::reached_step() const {
  return {.step = state_.position.iteration, .total_steps = state_.length.total_steps, .epoch = state_.position.epoch + 1};
}

void RunLoop::note_nonfinite(const std::string& event, const StepRecord& record) {
  parts_.health.trouble(event, record.iteration,
                        {{"loss", record.loss.item<double>()},
                         {"gradient_norm", record.gradient.norm.item<double>()},
                         {"rate", record.rate.item<double>()},
                         {"samples", parts_.data.samples_of(record)},
                         {"action", std::string(name_of(config_.loop.on_nonfinite))}});
}

bool RunLoop::run() {
  if (!state_.resumed && parts_.data.stream() == nullptr) report_initial_losses();
  if (early_stop_ && early_stop_->should_stop() && !state_.all_steps_done()) {
    state_.stops_early = true;
    context_.log.info(cat("Early stopping had ended the run: ", early_stop_->reason(), ". A larger patience continues it"));
  }
  if (config_.loop.resume && state_.resumed && state_.is_finished() && !state_.stops_early) say_nothing_is_left();
  parts_.health.begin(reached(), state_.resumed ? parts_.checkpoints.resumed_from() : "",
                      state_.resumed ? parts_.checkpoints.newest() : "");
  agree_to_stop();
  while (!state_.is_finished() && goes_on()) {
    if (!state_.epoch_is_complete()) train_epoch();
    if (state_.epoch_is_complete() && goes_on()) finish_epoch();
  }
  parts_.profile.finish();
  if (regroup_agreed_ && !state_.is_finished()) {
    save_for_next_round();
    return false;
  }
  state_.is_finished() ? finish() : stop_interrupted();
  return state_.is_finished();
}

// In fp32, without autocast and gradient, in training mode. The pipeline then starts over, so that no epoch misses a batch
// (unless first_batch_rule says that it does).
double RunLoop::first_batch_loss() {
  const at::NoGradGuard no_grad;
  double sum = 0;
  data::Batch batch;
  int64_t passes = 0;
  do {
    batch = parts_.data.loader().next();
    if (batch.micro == 0) passes = parts_.setup.joint_passes(batch.num_micro);  // before what the first pass gathers
    if (batch.input.size(0) == 0) {
      if (parts_.setup.joins_passes()) parts_.setup.outputs_of_zeros(batch.input, batch.target);
      continue;
    }
    if (!config_.data.allow_unnormalized) check_normalised(batch.input, parts_.data.samples().spec());
    sum +=
        parts_.setup
            .losses(batch.input, batch.target, {.seed = config_.loop.seed, .step = parts_.setup.counter, .sample = batch.sample})
            .sum()
            .item<double>();
  } while (batch.micro + 1 < batch.num_micro);
  for (int64_t pass = batch.num_micro; pass < passes; ++pass) parts_.setup.outputs_of_zeros(batch.input, batch.target);
  const int64_t samples = samples_of_step(config_, parts_.setup.layout.replicas.size(), parts_.data.samples().size(), batch.step);
  if (consumes_first_batch(config_)) {
    state_.position.step_in_epoch = 1;
  } else {
    parts_.data.loader().resume({.epoch = 0, .step = 0});
  }
  const at::Tensor total = parallel::all_reduce(parts_.setup.layout.replicas, at::full({1}, sum, at::kDouble));
  return total.item<double>() / static_cast<double>(samples);
}

void RunLoop::report_initial_losses() {
  const double train_loss = first_batch_loss();
  parts_.report.initial(train_loss, parts_.validator.first_batch());
}

// Includes the rest of the run: its samples, and ends of epochs that take as long as the last one.
observe::ProgressOptions RunLoop::progress_options() const {
  const int64_t epochs = epochs_of(state_.length);
  const int64_t epochs_left = std::max<int64_t>(epochs - state_.position.epoch - 1, 0);
  const int64_t steps_left =
      state_.length.total_steps - state_.position.iteration - (state_.length.steps_per_epoch - state_.position.step_in_epoch);
  return {.title = cat("epoch ", state_.position.epoch + 1, "/", epochs),
          .total = parts_.data.samples_per_epoch(),
          .rest = std::max<int64_t>(steps_left, 0) * config_.loop.global_batch_size,
          .rest_s = static_cast<double>(epochs_left) * epoch_end_s_,
          .now_s = {}};
}

// Waits for the samples of a step if another program hands them over. When it has ended, the run's length is the steps done.
bool RunLoop::has_samples() {
  const auto is_stopped = [this] { return look_at_time(), wants_stop(); };
  if (parts_.data.wait_for_step(is_stopped, /*is_first=*/state_.position.iteration == 0)) return true;
  if (wants_stop()) return false;
  state_.length.total_steps = state_.position.iteration;
  context_.log.info(cat("The pairs have ended: step ", state_.position.iteration, " was the last"));
  return false;
}

// Steps until the epoch or the run ends, or a signal arrives.
void RunLoop::train_epoch() {
  observe::Progress progress(context_.console, progress_options());
  const Stopwatch watch;
  int64_t done = state_.position.step_in_epoch * config_.loop.global_batch_size;
  while (!state_.epoch_is_complete() && goes_on() && has_samples()) {
    parts_.profile.begin_step(state_.steps_so_far());
    const StepRecord record = train_step();
    parts_.profile.end_step(state_.steps_so_far());
    state_.last_lr = record.rate;
    state_.validation_loss.reset();
    ++state_.position.iteration;
    ++state_.position.step_in_epoch;
    state_.is_whole = true;
    parts_.report.add_step(record);
    nonfinite_.add(record);
    parts_.health.add_step(record, reached());
    progress.update(done += record.num_samples);
    if (context_.listener != nullptr) context_.listener->stepped(reached_step());
    if (!state_.epoch_is_complete()) parts_.checkpoints.save_if_due(/*is_best=*/false);
  }
  nonfinite_.flush();  // waits for the device, so that the time includes its work
  progress.finish();
  parts_.report.add_seconds(watch.seconds());
}

StepRecord RunLoop::train_step() {
  const Stopwatch watch;
  look_at_time();
  follow_curriculum();
  if (context_.faults != nullptr) context_.faults->begin_step(state_.position.iteration + 1, parts_.setup.table);
  StepRecord record = step_->run([this] { return next_batch(); }, wants_stop() ? 1 : 0);
  if (auto* const replay = parts_.data.replay()) replay->end_step();
  state_.is_whole = false;
  parts_.report.share(state_.picture);
  record.iteration = state_.position.iteration + 1;
  record.epoch = state_.position.epoch, record.step = state_.position.step_in_epoch;
  read_requests(record);
  parts_.meter.add(record);
  check_replicas_if_due();
  longest_step_s_ = std::max(longest_step_s_, watch.seconds());
  return record;
}

void RunLoop::follow_curriculum() {
  const int64_t steps = steps_at(config_.loss, state_.position.epoch, state_.position.iteration);
  if (state_.position.iteration > 0 && steps != parts_.data.steps() && parts_.data.has_sequences()) {
    context_.log.info(
        cat("From step ", state_.position.iteration + 1, " on a sample is trained for ", steps, " steps of the model"));
  }
  parts_.data.set_steps(steps);
}

// Reads all ranks' requests: if one was asked to stop, if notes about samples wait, if all have written a checkpoint.
void RunLoop::read_requests(const StepRecord& record) {
  bool all_have_written = true;
  if (record.requests.defined()) {
    const at::Tensor requests = record.requests.cpu();
    const auto* found = requests.const_data_ptr<double>();
    stop_agreed_ = found[0] > 0;
    if (found[1] > 0) parts_.data.notes().share();
    all_have_written = found[2] == static_cast<double>(context_.world.size());
    regroup_agreed_ = found[3] > 0 && !stop_agreed_;
  } else {
    regroup_agreed_ = others_wait() && !wants_stop();
  }
  parts_.checkpoints.collect(all_have_written);
  tell_saved();
}

// A checkpoint beside training is reported some steps after it began.
void RunLoop::tell_saved() {
  for (const std::filesystem::path& folder : parts_.checkpoints.take_saved()) parts_.health.saved(folder.string());
  for (const std::filesystem::path& folder : parts_.checkpoints.take_damaged()) {
    parts_.health.trouble("damaged_checkpoint", state_.position.iteration, {{"path", folder.string()}});
  }
  parts_.health.saves_every(parts_.checkpoints.interval(), parts_.checkpoints.expected_goodput());
}

// The tutorials' range: the part of reading and copying that is not hidden.
data::Batch RunLoop::next_batch() {
  const observe::Span span(&parts_.profile.tracer(), "data copy in", state_.position.step_in_epoch);
  data::Batch batch = parts_.data.loader().next();
  if (auto* const replay = parts_.data.replay()) replay->feed(batch);
  return batch;
}

void RunLoop::check_replicas_if_due() {
  const int64_t interval = config_.parallel.replica_check_interval;
  const int64_t done = state_.position.iteration + 1;
  if (context_.world.size() == 1 || config_.parallel.noddp || interval == 0 || done % interval != 0) return;
  parts_.setup.data_parallel->complete_weights();
  parallel::check_replicas(parts_.setup.table, parts_.setup.layout.groups, cat("at step ", done));
}

void RunLoop::step_from(const Step::Source& next) {
  const StepRecord record = step_->run(next, wants_stop() ? 1 : 0);
  read_requests(record);
}

// Reports and validates. A signal during validation leaves the epoch complete and unfinished: a resumed run finishes it.
void RunLoop::finish_epoch() {
  const Stopwatch watch;
  parts_.report.epoch(parts_.meter);
  if (state_.position.epoch == 0) parts_.validator.check_trained(parts_.meter.mean_loss());
  if (!validate()) return;
  const bool is_best = parts_.checkpoints.note_best(best_candidate_);
  stop_early_if_due(state_.ends_full_epoch());
  if (state_.ends_full_epoch()) {
    parts_.meter.clear();
    parts_.report.begin_epoch();
    state_.picture.reset();
    ++state_.position.epoch;
    state_.position.step_in_epoch = 0;
  }
  parts_.checkpoints.save_if_due(is_best);
  epoch_end_s_ = watch.seconds();
}

// An epoch that the end of the run cuts short does not count: a longer run will validate it again.
void RunLoop::stop_early_if_due(bool is_full_epoch) {
  if (!early_stop_ || !is_full_epoch) return;
  early_stop_->add(stopping_value_, state_.position.iteration);
  if (!early_stop_->should_stop() || state_.all_steps_done()) return;
  state_.stops_early = true;
  context_.log.info(cat("Early stopping at step ", state_.position.iteration, ": ", early_stop_->reason()));
}

bool RunLoop::validate() {
  auto* const average = config_.optimizer.ema_validate ? parts_.setup.weight_average.get() : nullptr;
  AveragedWeights averaged(average, [this] { parts_.setup.data_parallel->after_update(); });
  const auto report = parts_.validator.run(state_.position.epoch, [this] {
    parts_.health.write_if_due();
    agree_to_stop();
    return interrupted();
  });
  averaged.end();
  parts_.data.notes().share();
  if (!report) return false;
  parts_.report.validation(*report);
  state_.validation_loss = report->loss;
  if (context_.listener != nullptr) {
    context_.listener->validated(reached_step(), parts_.meter.mean_loss(), report->loss, state_.last_lr.item<double>());
  }
  judge(*report);
  return true;
}

// Takes the first rank's values, so that all ranks end together.
void RunLoop::judge(const ValidationReport& report) {
  best_candidate_ = value_of(report, best_metric_);
  if (!early_stop_) return;
  const at::Tensor value = at::full({1}, value_of(report, *stopping_metric_), at::kDouble);
  if (context_.world.size() > 1) parallel::broadcast(context_.world.world_group(), value, 0);
  stopping_value_ = value.item<double>();
}

// The clock of the first rank decides.
void RunLoop::look_at_time() {
  if (!context_.time_limit || !context_.world.is_main() || out_of_time_) return;
  out_of_time_ = context_.time_limit->is_due(longest_step_s_, parts_.checkpoints.save_seconds());
}

// Ranks that step together must stop together: any rank's signal counts, at the same place on all.
void RunLoop::agree_to_stop() {
  look_at_time();
  if (context_.world.size() == 1) return;
  const at::Tensor own = at::full({1}, int64_t{wants_stop()}, at::kLong);
  stop_agreed_ = parallel::all_reduce(context_.world.world_group(), own, parallel::Reduction::Max).item<int64_t>() != 0;
}

}  // namespace welkin::train
