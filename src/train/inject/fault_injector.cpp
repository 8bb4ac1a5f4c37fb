// SPDX-License-Identifier: Apache-2.0
#include "train/inject/fault_injector.h"

#include <ATen/core/grad_mode.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/fault/wall_clock.h"
#include "core/text.h"
#include "train/inject/damage.h"

namespace welkin::train {
namespace {

std::string_view phase_of(WriteStage stage) {
  switch (stage) {
    case WriteStage::Create:
      return "create";
    case WriteStage::Write:
      return "write";
    case WriteStage::Sync:
      return "sync";
    case WriteStage::Rename:
      break;
  }
  return "rename";
}

// The step of a file in a checkpoint's folder, or in the unfinished folder beside it: training may be steps ahead.
std::optional<int64_t> step_of_checkpoint_at(const std::filesystem::path& path) {
  const std::string text = path.string();
  constexpr std::string_view kFolder = "step_";
  const size_t found = text.rfind(kFolder);
  if (found == std::string::npos) return {};
  int64_t step = 0;
  const char* digits = text.data() + found + kFolder.size();
  if (std::from_chars(digits, text.data() + text.size(), step).ec != std::errc()) return {};
  return step;
}

void sleep_for_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

constexpr double kSlightlyMore = 1.0009765625;

bool is_of_losses(FaultKind kind) {
  return kind == FaultKind::NanGradient || kind == FaultKind::Spike || kind == FaultKind::WrongGradient;
}

bool can_repeat(FaultKind kind) { return kind == FaultKind::Slow || kind == FaultKind::NanGradient || kind == FaultKind::Spike; }

}  // namespace

FaultInjector::FaultInjector(const std::vector<Fault>& faults, int64_t rank)
    : drops_connections_(std::ranges::find(faults, FaultKind::DropConnection, &Fault::kind) != faults.end()), loss_ranks_{rank} {
  for (const Fault& fault : faults) {
    if (!fault.rank || *fault.rank == rank || is_of_losses(fault.kind)) pending_.push_back({.fault = fault});
  }
}

// Of a fault in losses: that it is to happen in one of this rank's.
bool FaultInjector::concerns(const Fault& fault) const {
  if (!is_of_losses(fault.kind)) return true;
  return fault.rank ? std::ranges::find(loss_ranks_, *fault.rank) != loss_ranks_.end() : !loss_ranks_.empty();
}

// A fault that lasts several steps happens in the remaining ones. A process that starts anew within its life (elastic) has
// counted its own.
void FaultInjector::leave_out_passed(int64_t steps_done) {
  std::erase_if(pending_, [&](Pending& pending) {
    Fault& fault = pending.fault;
    const int64_t passed = steps_done + 1 - fault.step;
    if (passed <= 0 || pending.times > 0 || pending.passed > 0) return false;
    if (can_repeat(fault.kind) && passed < fault.steps) {
      fault.steps -= passed;
      return false;
    }
    if (say_ && concerns(fault)) say_(cat("Fault left out, the run is past its step: ", fault.text), "left_out", steps_done);
    return true;
  });
}

void FaultInjector::open(const std::filesystem::path& checkpoints, int64_t steps_done, Say say, std::vector<int64_t> loss_ranks) {
  checkpoints_ = checkpoints;
  loss_ranks_ = std::move(loss_ranks);
  say_ = std::move(say);
  leave_out_passed(steps_done);
  const bool writes = std::ranges::any_of(pending_, [](const Pending& pending) { return is_write_phase(pending.fault.phase); });
  watch_.reset();
  if (!writes) return;
  watch_ = std::make_unique<WriteWatchScope>(
      [this](WriteStage stage, const std::filesystem::path& path) { return on_write(stage, path); });
}

void FaultInjector::say_unused(int64_t steps_done) {
  const std::lock_guard lock(mutex_);
  for (const Pending& pending : pending_) {
    if (pending.times == 0 && concerns(pending.fault))
      say_(cat("Fault left out, its place never came: ", pending.fault.text), "left_out", steps_done);
  }
}

bool FaultInjector::changes_losses() const {
  return std::ranges::any_of(
      pending_, [this](const Pending& pending) { return is_of_losses(pending.fault.kind) && concerns(pending.fault); });
}

bool FaultInjector::watches_spans() const {
  return std::ranges::any_of(
      pending_, [](const Pending& pending) { return pending.fault.phase != "step" && !is_write_phase(pending.fault.phase); });
}

// A fault is due once, or once in each of its steps.
bool FaultInjector::is_due(Pending& pending, std::string_view phase, int64_t step) const {
  const Fault& fault = pending.fault;
  if (fault.phase != phase || step < fault.step || pending.times >= (can_repeat(fault.kind) ? fault.steps : 1)) return false;
  if (pending.last_step == step || pending.passed++ < fault.after) return false;
  pending.last_step = step;
  ++pending.times;
  return true;
}

void FaultInjector::say(const Fault& fault, int64_t step, const std::string& more) const {
  if (say_) say_(cat("Fault injected: ", fault.text, ", at step ", step, more), name_of(fault.kind), step);
}

void FaultInjector::happen(const Fault& fault, int64_t step) {
  if (fault.kind == FaultKind::TruncateCheckpoint || fault.kind == FaultKind::FlipCheckpoint) {
    const auto path = damage_newest_checkpoint(
        checkpoints_, fault.kind == FaultKind::TruncateCheckpoint ? FileDamage::Truncate : FileDamage::FlipBit);
    return say(fault, step, path ? cat(", path=", path->string()) : ", there is no checkpoint yet");
  }
  say(fault, step);
  switch (fault.kind) {
    case FaultKind::Kill:
      ::kill(::getpid(), SIGKILL);
      break;
    case FaultKind::Stop:
      ::kill(::getpid(), SIGSTOP);
      break;
    case FaultKind::Slow:
      sleep_for_seconds(fault.seconds);
      break;
    case FaultKind::DropConnection:
      drop_connections();
      break;
    case FaultKind::WrongTime:
      shift_wall_clock(std::chrono::milliseconds(static_cast<int64_t>(fault.seconds * 1000)));
      break;
    case FaultKind::Exception:
      throw Error(ExitCode::Other, "inject", cat("an exception was asked for: step=", step, ", fault=", fault.text),
                  "Leave --inject out");
    default:
      break;  // faults of losses, weights and writes are made elsewhere
  }
}

void FaultInjector::begin_step(int64_t step, parallel::ParamTable& table) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  for (Pending& pending : pending_) {
    if (is_of_losses(pending.fault.kind) || !is_due(pending, "step", step)) continue;
    if (pending.fault.kind == FaultKind::FlipWeight) {
      flip_weight(pending.fault, table);
    } else {
      happen(pending.fault, step);
    }
  }
}

void FaultInjector::flip_weight(const Fault& fault, parallel::ParamTable& table) const {
  const at::NoGradGuard no_grad;
  parallel::ParamRow& row = fault.parameter.empty() ? table.rows().front() : table.at(fault.parameter);
  const at::Tensor values = row.trained().detach();
  if (values.numel() == 0) return say(fault, step_, ", this rank has nothing of it");
  values.as_strided({1}, {1}).view(at::kInt).bitwise_xor_(int64_t{1} << fault.bit);
  say(fault, step_, cat(", parameter=", row.name));
}

// Changes every micro-batch of a step. A WrongGradient is made once: the repeated step is right.
void FaultInjector::change_losses(at::Tensor& loss, at::Tensor& scaled) {
  const std::lock_guard lock(mutex_);
  for (Pending& pending : pending_) {
    const Fault& fault = pending.fault;
    if (!is_of_losses(fault.kind) || !concerns(fault)) continue;
    const bool is_again = can_repeat(fault.kind) && pending.last_step == step_ && pending.times > 0;
    if (!is_again && !is_due(pending, "step", step_)) continue;
    if (!is_again) say(fault, step_);
    if (fault.kind == FaultKind::Spike) {
      loss = loss * fault.factor;
      scaled = scaled * fault.factor;
    } else if (fault.kind == FaultKind::WrongGradient) {
      scaled = scaled * kSlightlyMore;
    } else {
      scaled = scaled * std::numeric_limits<double>::quiet_NaN();
    }
  }
}

void FaultInjector::at_phase(std::string_view phase) {
  const std::lock_guard lock(mutex_);
  for (Pending& pending : pending_) {
    if (is_due(pending, phase, step_)) happen(pending.fault, step_);
  }
}

void FaultInjector::begin(std::string_view name) noexcept {
  if (name != "step" && !is_write_phase(name)) at_phase(name);
}

int FaultInjector::on_write(WriteStage stage, const std::filesystem::path& path) {
  if (path.string().find(checkpoints_.string()) == std::string::npos) return 0;  // this also leaves out the log of faults
  std::unique_lock lock(mutex_);
  const int64_t step = step_of_checkpoint_at(path).value_or(step_);
  for (Pending& pending : pending_) {
    if (!is_due(pending, phase_of(stage), step)) continue;
    if (pending.fault.kind == FaultKind::Slow) {  // the thread of the step goes on meanwhile
      say(pending.fault, step);
      lock.unlock();
      sleep_for_seconds(pending.fault.seconds);
      lock.lock();
      continue;
    }
    if (pending.fault.kind != FaultKind::WriteError) {
      happen(pending.fault, step);
      continue;
    }
    say(pending.fault, step, cat(", path=", path.string()));
    return pending.fault.error;
  }
  return 0;
}

}  // namespace welkin::train
