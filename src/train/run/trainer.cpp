// SPDX-License-Identifier: Apache-2.0
// The loop over epochs and what happens at their ends.
#include "train/run/trainer.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "train/device/memory_report.h"
#include "train/device/throughput.h"

namespace welkin::train {

Trainer::Trainer(TrainerContext context)
    : context_(std::move(context)),
      config_(context_.resolved.config),
      folder_(config_, context_.world.size()),
      store_(folder_.checkpoint_folder()),
      data_notes_(context_.world, context_.log) {}

Trainer::~Trainer() { context_.world.trace(nullptr); }

RunOutcome Trainer::run() {
  try {
    return run_to_the_end();
  } catch (const std::exception&) {
    throw out_of_memory(memory_error_in_flight(config_));
  }
}

RunOutcome Trainer::run_to_the_end() {
  parallel::MeshGroups groups = make_mesh_groups(config_.parallel, context_.world);
  prepare_benchy();
  open_datasets(std::move(groups));
  open_folder();
  start_profile();
  start_loader();
  run_benchy_io();
  build_setup();
  build_step();
  start_or_resume();
  report_setup();
  if (benchy_) return run_benchy();
  if (!resumed_) report_initial_losses();
  agree_to_stop();
  while (!is_finished() && !interrupted()) {
    if (!epoch_is_complete()) train_epoch();
    if (epoch_is_complete() && !interrupted()) finish_epoch();
  }
  profile_->finish();
  return is_finished() ? finish() : stop_early();
}

// From the last step on until finish_epoch() has done its work: a checkpoint in between continues there. Where the run ends
// within an epoch, the position stays there for a run that goes on further; that its end is done shows in the validation loss.
bool Trainer::epoch_is_complete() const {
  if (position_.step_in_epoch == length_.steps_per_epoch) return true;
  return all_steps_done() && position_.step_in_epoch > 0 && !validation_loss_;
}

// Steps until the epoch or the run ends, or a signal arrives.
void Trainer::train_epoch() {
  observe::Progress progress(context_.console,
                             {.title = cat("epoch ", position_.epoch + 1), .total = samples_per_epoch_, .now_s = {}});
  const Stopwatch watch;
  int64_t done = position_.step_in_epoch * config_.loop.global_batch_size;
  while (!epoch_is_complete() && !interrupted()) {
    profile_->begin_step(place_in_run());
    const StepRecord record = train_step();
    profile_->end_step(place_in_run());
    last_rate_ = record.rate;
    validation_loss_.reset();
    ++position_.iteration;
    ++position_.step_in_epoch;
    ++epoch_steps_;
    epoch_samples_ += record.num_samples;
    nonfinite_->add(record);
    progress.update(done += record.num_samples);
    if (!epoch_is_complete()) save_if_due(/*is_best=*/false);
  }
  nonfinite_->flush();  // also waits for the device, so the time is that of the work
  progress.finish();
  epoch_seconds_ += watch.seconds();
}

EpochReport Trainer::epoch_report() const {
  const double samples_per_second = epoch_seconds_ > 0 ? static_cast<double>(epoch_samples_) / epoch_seconds_ : 0;
  return {.epoch = position_.epoch + 1,
          .iterations = position_.iteration,
          .steps = epoch_steps_,
          .samples = epoch_samples_,
          .seconds = epoch_seconds_,
          .loss = meter_->mean_loss(),
          .last_rate = last_rate_.item<double>(),
          .next_rate = setup_->rates->current().item<double>(),
          .skipped = meter_->skipped_steps(),
          .throughput = throughput_text(train_flops_ * samples_per_second, peak_flops_)};
}

namespace {

// Of the peak that a run reports against: a fiftieth of the epoch's time is what measuring it may take.
double seconds_for_peak(double epoch_seconds) {
  constexpr double kShare = 0.02, kMostSeconds = 0.3;
  return std::min(kMostSeconds, kShare * epoch_seconds);
}

}  // namespace

// Reports and validates; a signal during validation leaves the epoch complete and unfinished, to be finished after a resume.
void Trainer::finish_epoch() {
  if (train_flops_ > 0 && peak_flops_ == 0) {  // once a run, and not before its first step
    peak_flops_ = static_cast<double>(context_.world.size()) *
                  measure_peak_flops(device_, config_.precision.amp_mode, seconds_for_peak(epoch_seconds_));
  }
  journal_->epoch(epoch_report());
  if (picture_) journal_->picture(*picture_, position_.iteration);
  if (!validate()) return;
  if (position_.step_in_epoch == length_.steps_per_epoch) begin_next_epoch();
  const bool is_best = std::isfinite(*validation_loss_) && (!best_loss_ || *validation_loss_ < *best_loss_);
  if (is_best) best_loss_ = validation_loss_;
  save_if_due(is_best);
}

void Trainer::begin_next_epoch() {
  meter_->clear();
  picture_.reset();
  epoch_seconds_ = 0;
  epoch_steps_ = epoch_samples_ = 0;
  ++position_.epoch;
  position_.step_in_epoch = 0;
}

bool Trainer::validate() {
  const auto report = validator_->run(position_.epoch, [this] {
    agree_to_stop();
    return interrupted();
  });
  data_notes_.share();
  if (!report) return false;
  journal_->validation(*report, position_.iteration);
  validation_loss_ = report->loss;
  return true;
}

// Ranks step together only if they also stop together: any rank's signal counts, at the same place on all.
void Trainer::agree_to_stop() {
  if (context_.world.size() == 1) return;
  const at::Tensor wish = at::full({1}, int64_t{context_.interrupt.requested()}, at::kLong);
  stop_agreed_ = parallel::all_reduce(context_.world.everyone(), wish, parallel::Reduction::Max).item<int64_t>() != 0;
}

RunOutcome Trainer::finish() {
  save();
  if (context_.world.leads()) store_.prune(config_.loop.keep_checkpoints);
  journal_->flush();
  if (const std::string traffic = context_.world.traffic_text(); !traffic.empty()) {
    context_.log.info(cat("Communication of rank 0:\n", traffic));
  }
  context_.log.info("DONE ---- rank 0");
  return {
      .completed = true, .iterations = position_.iteration, .folder = folder_.path(), .has_lost_records = profile_->has_lost()};
}

}  // namespace welkin::train
