// SPDX-License-Identifier: Apache-2.0
#include "train/health/run_health.h"

#include <ATen/ops/zeros.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "core/error.h"
#include "core/fault/wall_clock.h"
#include "core/process/host.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"

namespace welkin::train {
namespace {

int64_t step_of_checkpoint(const std::string& folder) {
  const size_t mark = folder.rfind('_');
  return mark == std::string::npos ? 0 : std::atoll(folder.c_str() + mark + 1);
}

std::string first_of(const std::vector<int64_t>& samples) {
  constexpr size_t kShown = 16;
  const std::vector<int64_t> first(samples.begin(),
                                   samples.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, samples.size())));
  return cat("[", join(first, " "), samples.size() > kShown ? " ..." : "", "]");
}

// (ranks, width): the rows of all ranks, of which `own` is this rank's.
at::Tensor of_all_ranks(const parallel::World& world, const at::Tensor& own) {
  at::Tensor rows = at::zeros({world.size(), own.numel()}, own.options());
  rows.select(0, world.rank()).copy_(own);
  return parallel::all_reduce(world.world_group(), rows);
}

}  // namespace

RunHealth::RunHealth(const HealthParts& parts)
    : config_(parts.config.health), parts_(parts), events_(parts.folder / "events.jsonl", parts.world.rank()) {
  status_.run = parts.folder.string();
  status_.host = host_name();
  status_.process = ::getpid();
  status_.ranks = parts.world.size();
}

void RunHealth::event(std::string_view name, int64_t step, const observe::EventFields& fields, bool of_this_rank) {
  if (of_this_rank || parts_.world.is_main()) events_.add(name, step, fields);
}

void RunHealth::trouble(std::string_view name, int64_t step, const observe::EventFields& fields) {
  event(name, step, fields);
  if (on_trouble_) on_trouble_(std::string(name), step);
}

void RunHealth::begin(const RunProgress& progress, const std::string& resumed_from, const std::string& newest) {
  first_step_ = progress.step;
  status_.step = progress.step;
  status_.total_steps = progress.total_steps;
  status_.epoch = progress.epoch;
  status_.last_checkpoint = newest;
  if (resumed_from.empty()) {
    event("started", progress.step, {{"total_steps", progress.total_steps}, {"ranks", parts_.world.size()}});
  } else {
    event("resumed", progress.step, {{"from", resumed_from}, {"ranks", parts_.world.size()}});
  }
  if (config_.on_spike == config::SpikeAction::Rollback) kept_.keep(parts_.setup, progress.step);
  if (parts_.phase_times != nullptr) learn_hosts();
  since_begin_.restart();
  write_status();
}

void RunHealth::add_step(const StepRecord& record, const RunProgress& progress) {
  status_.step = progress.step;
  status_.total_steps = progress.total_steps;
  status_.epoch = progress.epoch;
  samples_ += record.num_samples;
  last_loss_ = record.loss, last_rate_ = record.rate;
  if (record.spike.defined()) look_for_spike(record);
  const int64_t interval = config_.slow_rank_interval;
  if (parts_.phase_times != nullptr && record.iteration % interval == 0) compare_ranks(record.iteration);
  write_if_due();
}

void RunHealth::learn_hosts() {
  constexpr int64_t kLongest = 64;
  const std::string own = host_name().substr(0, kLongest);
  at::Tensor letters = at::zeros({kLongest}, at::kLong);
  std::ranges::copy(own, letters.data_ptr<int64_t>());
  const at::Tensor all = of_all_ranks(parts_.world, letters);
  for (int64_t rank = 0; rank < parts_.world.size(); ++rank) {
    std::string host;
    for (const int64_t* letter = all.const_data_ptr<int64_t>() + rank * kLongest; *letter != 0 && host.size() < kLongest;
         ++letter) {
      host += static_cast<char>(*letter);
    }
    hosts_.push_back(host);
  }
}

void RunHealth::compare_ranks(int64_t step) {
  const PhaseSeconds own = parts_.phase_times->take();
  at::Tensor seconds = at::zeros({static_cast<int64_t>(own.size())}, at::kDouble);
  std::ranges::copy(own, seconds.data_ptr<double>());
  const at::Tensor all = of_all_ranks(parts_.world, seconds);
  std::vector<PhaseSeconds> of_ranks(static_cast<size_t>(parts_.world.size()));
  const double* next = all.const_data_ptr<double>();
  for (PhaseSeconds& row : of_ranks) {
    std::copy_n(next, row.size(), row.begin());
    next += row.size();
  }
  for (const SlowRank& slow : find_slow_ranks(of_ranks, config_.slow_rank_factor)) {
    const std::string& host = hosts_.at(static_cast<size_t>(slow.rank));
    trouble("slow_rank", step,
            {{"slow_rank", slow.rank},
             {"host", host},
             {"phase", std::string(slow.phase)},
             {"factor", slow.factor},
             {"steps", config_.slow_rank_interval}});
    parts_.log.warning(cat("event slow_rank: step=", step, ", rank=", slow.rank, ", host=", host, ", phase=", slow.phase,
                           ", factor=", slow.factor, " of the median over ", config_.slow_rank_interval, " steps"));
  }
}

void RunHealth::look_for_spike(const StepRecord& record) {
  const bool is_spike = record.spike.item<float>() != 0;
  const bool goes_back = config_.on_spike == config::SpikeAction::Rollback;
  if (is_spike) {
    const std::vector<int64_t> samples = parts_.samples_of(record);
    trouble("spike", record.iteration,
            {{"loss", record.loss.item<double>()},
             {"gradient_norm", record.gradient.norm.item<double>()},
             {"rate", record.rate.item<double>()},
             {"epoch", record.epoch + 1},
             {"samples", samples},
             {"action", std::string(name_of(config_.on_spike))}});
    parts_.log.warning(cat("event spike: step=", record.iteration, ", loss=", record.loss.item<double>(),
                           ", gradient_norm=", record.gradient.norm.item<double>(), ", samples=", first_of(samples),
                           ", action=", name_of(config_.on_spike)));
    if (goes_back && parts_.setup.spikes->in_a_row() >= config_.spike_patience) roll_back(record);
  } else if (goes_back && record.gradient.found_inf.item<float>() == 0 &&
             record.iteration >= kept_.step() + config_.rollback_interval) {
    kept_.keep(parts_.setup, record.iteration);
  }
}

// The run's position stays: the batches since the kept state are left out, and the schedule does not move back.
void RunHealth::roll_back(const StepRecord& record) {
  const int64_t kept = kept_.restore(parts_.setup);
  parts_.setup.spikes->forget_row();
  trouble("rollback", record.iteration, {{"state_of_step", kept}, {"left_out_steps", record.iteration - kept}});
  parts_.log.warning(cat("event rollback: step=", record.iteration, ", state_of_step=", kept, ", left out: the batches of steps ",
                         kept + 1, " to ", record.iteration, ", patience=", config_.spike_patience));
}

void RunHealth::saved(const std::string& newest) {
  if (newest.empty() || newest == status_.last_checkpoint) return;
  status_.last_checkpoint = newest;
  event("checkpoint", step_of_checkpoint(newest), {{"path", newest}});
}

void RunHealth::saves_every(int64_t steps, double goodput) {
  status_.checkpoint_interval = steps;
  status_.expected_goodput = goodput > 0 ? std::optional(goodput) : std::nullopt;
}

void RunHealth::write_if_due() {
  if (!parts_.world.is_main() || config_.status_interval_s == 0 || since_status_.seconds() < config_.status_interval_s) return;
  read_last_step();
  write_status();
}

// Waits for the device.
void RunHealth::read_last_step() {
  if (!last_loss_.defined()) return;
  status_.loss = last_loss_.item<double>();
  status_.learning_rate = last_rate_.item<double>();
}

void RunHealth::write_status() {
  if (!parts_.world.is_main() || config_.status_interval_s == 0) return;
  const double seconds = since_status_.seconds();
  if (samples_ > 0) status_.samples_per_s = static_cast<double>(samples_) / seconds;
  if (const int64_t done = status_.step - first_step_; done > 0) {
    status_.seconds_left =
        since_begin_.seconds() / static_cast<double>(done) * static_cast<double>(status_.total_steps - status_.step);
  }
  status_.events = events_.counts();
  status_.milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(wall_now().time_since_epoch()).count();
  samples_ = 0;
  since_status_.restart();
  try {
    observe::write_status(parts_.folder, status_);
    status_failing_ = false;
  } catch (const DataError& error) {
    if (!std::exchange(status_failing_, true)) parts_.log.error(error.what());
  }
}

void RunHealth::end(const std::string& state, const std::string& error) {
  status_.state = state;
  status_.error = error;
  if (error.empty()) {
    read_last_step();  // after an error the device may not answer
    event(state, status_.step);
  } else {
    event(state, status_.step, {{"error", error}}, /*of_this_rank=*/true);
  }
  write_status();
}

void write_failed_start(const config::HealthConfig& config, const std::filesystem::path& folder, const parallel::World& world,
                        const std::string& error) {
  observe::EventLog(folder / "events.jsonl", world.rank()).add("failed", 0, {{"error", error}});
  if (config.status_interval_s == 0) return;
  observe::RunStatus status;
  status.state = "failed";
  status.run = folder.string();
  status.host = host_name();
  status.process = ::getpid();
  status.ranks = world.size();
  status.error = error;
  status.events = {{"failed", 1}};
  status.milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(wall_now().time_since_epoch()).count();
  try {
    observe::write_status(folder, status);
  } catch (const DataError&) {
    return;  // the error of the start itself is reported
  }
}

}  // namespace welkin::train
