// SPDX-License-Identifier: Apache-2.0
#include "train/run/benchy_run.h"

#include <ATen/Context.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/output_check.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "train/benchy/fixed_batches.h"
#include "train/profile/nvtx.h"

namespace welkin::train {
namespace {

Benchy make_benchy(const TrainerContext& context) {
  const ProfileOptions& profile = context.profile;
  if (!profile.profile.empty() || profile.timeline || profile.epoch || !profile.steps.empty()) {
    throw ConfigError("benchy",
                      "--profile, --timeline and their window cannot be used with --enable_benchy, whose epochs are trials",
                      "Measure first, then profile");
  }
  const auto say = [&context](const std::string& line) {
    if (context.world.is_main() && context.say) context.say(line);
  };
  return {read_benchy_config(context.benchy_file), context.world.size(), context.resolved.config.loop.global_batch_size, say};
}

}  // namespace

BenchyRun::BenchyRun(const TrainerContext& context) : context_(context), benchy_(make_benchy(context)) {
  if (context_.world.is_main()) check_output("benchy", "output_dir/output_filename", benchy_.output_path());
}

// Waits until the device has done all its work, and at a barrier until every rank is here.
double BenchyRun::now() const {
  if (device_.is_cuda()) at::detail::getCUDAHooks().deviceSynchronize(device_.index());
  if (benchy_.config().use_distributed_barrier) parallel::barrier(context_.world.world_group());
  return watch_.seconds();
}

// Emits benchy's ranges for NVIDIA's tools: the trial, its steps, and the fetching of their data.
void BenchyRun::run_trial(const BenchyTrial& trial, const Step::Source& next,
                          const std::function<void(const Step::Source&)>& work) {
  benchy_.start(trial);
  const std::string range = cat("BENCHY::BenchmarkIterator::", trial.label());
  const observe::Span whole(tracer_, range);
  for (int64_t step = 0; !is_stopped_() && !benchy_.tick(now()); ++step) {
    const observe::Span span(tracer_, cat(range, "::STEP_", step));
    work([&] {
      const observe::Span data(tracer_, cat(range, "::DATA_", step));
      return next();
    });
  }
}

void BenchyRun::read(data::Pipeline& loader, const observe::Tracer& tracer, c10::Device device, IsStopped is_stopped) {
  loader_ = &loader;
  tracer_ = &tracer;
  device_ = device;
  is_stopped_ = std::move(is_stopped);
  benchy_.introduce();
  if (device_.is_cuda() && benchy_.profiles(context_.world.is_main())) start_cuda_profiler();  // never stopped, as in benchy
  const auto read_step = [](const Step::Source& next) {
    data::Batch batch;
    do {
      batch = next();
    } while (batch.micro + 1 < batch.num_micro);
  };
  for (const BenchyTrial& trial : benchy_.trials(BenchyKind::Io)) {
    run_trial(
        trial, [this] { return loader_->next(); }, read_step);
  }
  loader_->resume({.epoch = 0, .step = 0});
}

void BenchyRun::run_epoch(const BenchyTrial& trial, const StepFrom& step) {
  loader_->resume({.epoch = 0, .step = 0});
  if (trial.kind == BenchyKind::Full)
    return run_trial(
        trial, [this] { return loader_->next(); }, step);
  FixedBatches fixed(*loader_);
  const Step::Source next = [&fixed] { return fixed.next(); };
  step(next);  // steps over the batch that is fetched once, before the clock starts
  run_trial(trial, next, step);
}

// Every epoch of the configuration holds one trial, and the start of the next one ends the tests.
bool BenchyRun::run(const RunLength& length, const StepFrom& step) {
  std::vector<BenchyTrial> trials = benchy_.trials(BenchyKind::Synthetic);
  for (const BenchyTrial& trial : benchy_.trials(BenchyKind::Full)) trials.push_back(trial);
  const int64_t epochs = length.total_steps / length.steps_per_epoch;
  const auto needed = static_cast<int64_t>(trials.size()) + 1;
  if (epochs < needed) {
    context_.log.warning(cat("benchy needs ", needed, " epochs for its tests, and this run has ", epochs,
                             ": there will be no summary and no JSON"));
  }
  for (int64_t epoch = 0; epoch < std::min(epochs, needed - 1) && !is_stopped_(); ++epoch) {
    run_epoch(trials[static_cast<size_t>(epoch)], step);
  }
  if (is_stopped_()) {
    throw Interrupted("benchy", "interrupted before its tests were done: there is no summary and no JSON", "Start the run again");
  }
  if (epochs < needed) return true;
  finish();
  if (!benchy_.config().exit_after_tests) {
    loader_->resume({.epoch = 0, .step = 0});
    const int64_t steps = (epochs - needed + 1) * length.steps_per_epoch;
    for (int64_t i = 0; i < steps && !is_stopped_(); ++i) step([this] { return loader_->next(); });
  }
  return !is_stopped_();
}

void BenchyRun::finish() {
  const std::string json = benchy_.finish();
  if (!context_.world.is_main()) return;
  const std::string path = benchy_.output_path();
  if (context_.say) context_.say(cat("BENCHY::INFO::Message: Writing JSON output to ", path, "."));
  write_file_atomically(path, json);
  if (context_.say && benchy_.config().exit_after_tests) context_.say("BENCHY::INFO::Message: Tests completed.... exiting.");
}

}  // namespace welkin::train
