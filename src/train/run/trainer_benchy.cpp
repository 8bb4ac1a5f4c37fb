// SPDX-License-Identifier: Apache-2.0
// --enable_benchy: the run measures, as the tutorials' benchy does around their training loader, and ends. IO before the model is
// built, then one trial per epoch of SYNTHETIC and of FULL; no initial losses, no validation, no checkpoint.
#include <ATen/Context.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/output_place.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "train/benchy/benchy.h"
#include "train/benchy/fixed_batches.h"
#include "train/profile/nvtx.h"
#include "train/run/trainer.h"

namespace welkin::train {

void Trainer::prepare_benchy() {
  if (!config_.switches.enable_benchy) return;
  const ProfileOptions& profile = context_.profile;
  if (!profile.profile.empty() || profile.timeline || profile.epoch || !profile.steps.empty()) {
    throw ConfigError("benchy", "its epochs are trials: --profile, --timeline and their window exclude --enable_benchy",
                      "Measure first, then profile");
  }
  BenchyConfig config = read_benchy_config(context_.benchy_file);
  const auto say = [this](const std::string& line) {
    if (context_.world.leads() && context_.say) context_.say(line);
  };
  benchy_ = std::make_unique<Benchy>(std::move(config), context_.world.size(), config_.loop.global_batch_size, say);
  if (context_.world.leads()) check_output("benchy", "output_dir/output_filename", benchy_->output_path());
}

// The device has done all that it was given, and with the barrier every rank is here.
double Trainer::benchy_now() const {
  if (device_.is_cuda()) at::detail::getCUDAHooks().deviceSynchronize(device_.index());
  if (benchy_->config().use_distributed_barrier) parallel::barrier(context_.world.everyone());
  return benchy_watch_.seconds();
}

// With benchy's ranges, which NVIDIA's tools show: of the trial, its steps, and the fetching of their data.
void Trainer::run_trial(const BenchyTrial& trial, const Step::Source& next,
                        const std::function<void(const Step::Source&)>& work) {
  benchy_->start(trial);
  const observe::Tracer* tracer = &profile_->tracer();
  const std::string range = cat("BENCHY::BenchmarkIterator::", trial.label());
  const observe::Span whole(tracer, range);
  for (int64_t step = 0; !interrupted() && !benchy_->tick(benchy_now()); ++step) {
    const observe::Span span(tracer, cat(range, "::STEP_", step));
    work([&] {
      const observe::Span data(tracer, cat(range, "::DATA_", step));
      return next();
    });
  }
}

void Trainer::run_benchy_io() {
  if (!benchy_) return;
  benchy_->introduce();
  if (device_.is_cuda() && benchy_->profiles(context_.world.leads())) start_cuda_profiler();  // never stopped, as benchy's
  const auto read_step = [](const Step::Source& next) {
    data::Batch batch;
    do {
      batch = next();
    } while (batch.micro + 1 < batch.num_micro);
  };
  for (const BenchyTrial& trial : benchy_->trials(BenchyKind::Io)) {
    run_trial(
        trial, [this] { return pipeline_->next(); }, read_step);
  }
  pipeline_->resume({.epoch = 0, .step = 0});
}

void Trainer::step_from(const Step::Source& next) {
  const StepRecord record = step_->run(next, context_.interrupt.requested() ? 1 : 0);
  read_requests(record);
}

void Trainer::run_benchy_epoch(const BenchyTrial& trial) {
  pipeline_->resume({.epoch = 0, .step = 0});
  const auto step = [this](const Step::Source& next) { step_from(next); };
  if (trial.kind == BenchyKind::Full)
    return run_trial(
        trial, [this] { return pipeline_->next(); }, step);
  FixedBatches fixed(*pipeline_);
  const Step::Source next = [&fixed] { return fixed.next(); };
  step_from(next);  // the batch that is fetched once is stepped over before the clock starts
  run_trial(trial, next, step);
}

// Every epoch of the configuration holds one trial, and the start of the next one ends the tests.
RunOutcome Trainer::run_benchy() {
  std::vector<BenchyTrial> trials = benchy_->trials(BenchyKind::Synthetic);
  for (const BenchyTrial& trial : benchy_->trials(BenchyKind::Full)) trials.push_back(trial);
  const int64_t epochs = length_.total_steps / length_.steps_per_epoch;
  const auto needed = static_cast<int64_t>(trials.size()) + 1;
  if (epochs < needed) {
    context_.log.warning(cat("benchy needs ", needed, " epochs for its tests, and this run has ", epochs,
                             ": there will be no summary and no JSON"));
  }
  for (int64_t epoch = 0; epoch < std::min(epochs, needed - 1) && !interrupted(); ++epoch) {
    run_benchy_epoch(trials[static_cast<size_t>(epoch)]);
  }
  if (interrupted()) {
    throw Interrupted("benchy", "interrupted before its tests were done: there is no summary and no JSON", "Start the run again");
  }
  if (epochs < needed) return {.completed = true, .iterations = 0, .folder = folder_.path()};
  finish_benchy();
  if (!benchy_->config().exit_after_tests) {
    pipeline_->resume({.epoch = 0, .step = 0});
    const int64_t steps = (epochs - needed + 1) * length_.steps_per_epoch;
    for (int64_t step = 0; step < steps && !interrupted(); ++step) step_from([this] { return pipeline_->next(); });
  }
  return {.completed = !interrupted(), .iterations = 0, .folder = folder_.path()};
}

void Trainer::finish_benchy() {
  const std::string json = benchy_->finish();
  if (!context_.world.leads()) return;
  const std::string path = benchy_->output_path();
  if (context_.say) context_.say(cat("BENCHY::INFO::Message: Writing JSON output to ", path, "."));
  write_file_atomically(path, json);
  if (context_.say && benchy_->config().exit_after_tests) context_.say("BENCHY::INFO::Message: Tests completed.... exiting.");
}

}  // namespace welkin::train
