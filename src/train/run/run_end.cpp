// SPDX-License-Identifier: Apache-2.0
// The end of a run's loop: after its last step, or before.
#include <ATen/ops/full.h>

#include <cmath>
#include <csignal>

#include "core/error.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "train/run/run_loop.h"

namespace welkin::train {
namespace {

const char* cause_of_stop(int signal) {
  switch (signal) {
    case 0:
      return "the time limit";
    case SIGINT:
      return "SIGINT";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "SIGTERM";
  }
}

double in_hundredths(double seconds) { return std::round(seconds * 100) / 100; }

}  // namespace

// Without a word a run that was resumed after its end looks like one that has trained further.
void RunLoop::say_nothing_is_left() const {
  const config::LoopConfig& loop = config_.loop;
  const bool by_steps = loop.num_iters > 0;
  const std::string length = by_steps ? cat("num_iters=", loop.num_iters) : cat("num_epochs=", loop.num_epochs);
  context_.log.info(cat("Nothing is left to do: the run was resumed at step ", state_.position.iteration, " and ends at step ",
                        state_.length.total_steps, ", by ", length, ". A larger --", by_steps ? "num_iters" : "num_epochs",
                        " goes on from there"));
}

void RunLoop::finish() {
  if (parts_.data.stream() != nullptr) context_.log.info(parts_.data.stream()->text());
  const bool is_in_folder = parts_.checkpoints.save();
  parts_.checkpoints.prune();
  say_checkpoints();
  tell_saved();
  parts_.health.saved(parts_.checkpoints.newest());
  if (!is_in_folder) {
    throw CheckpointError("train", cat("the run's folder has not the last checkpoint: saved=", parts_.checkpoints.newest()),
                          "See the reason above; free space, then --resume continues from there and saves it again");
  }
  if (context_.faults != nullptr) context_.faults->say_unused(state_.position.iteration);
  parts_.health.end("finished");
  parts_.report.finish();
  context_.log.info("DONE ---- rank 0");
}

// All ranks are here. Without a checkpoint the steps since the last one are lost if no rank has the whole state.
void RunLoop::save_for_next_round() {
  if (parts_.checkpoints.carries()) return;
  try {
    parts_.checkpoints.save();
    tell_saved();
    parts_.health.saved(parts_.checkpoints.newest());
  } catch (const CommError&) {
    throw;
  } catch (const Error& error) {
    context_.log.error(error.what());
  }
}

void RunLoop::say_checkpoints() {
  for (const std::string& line : parts_.checkpoints.summary()) context_.log.info(line);
}

int RunLoop::stop_signal() const {
  const int own = context_.interrupt.signal_number();
  if (context_.world.size() == 1) return own;
  constexpr int64_t kByHand = 1000;  // above the signals that a launcher sends to others after a Ctrl-C
  const at::Tensor number = at::full({1}, own == SIGINT ? kByHand : int64_t{own}, at::kLong);
  const auto most = parallel::all_reduce(context_.world.world_group(), number, parallel::Reduction::Max).item<int64_t>();
  return most == kByHand ? SIGINT : static_cast<int>(most);
}

void RunLoop::stop_interrupted() {
  const int signal = stop_signal();
  const char* cause = cause_of_stop(signal);
  if (signal == 0 && context_.time_limit) {
    const auto left = std::lround(context_.time_limit->seconds_left());
    const std::string place = left < 0 ? cat("is over: by ", -left, " s of ") : cat("is near: ", left, " s are left by ");
    context_.log.info(cat("The time limit ", place, context_.time_limit->source(), ", a checkpoint took ",
                          in_hundredths(parts_.checkpoints.save_seconds()), " s, a step ", in_hundredths(longest_step_s_), " s"));
  }
  try {
    parts_.checkpoints.save();
    parts_.report.flush();
  } catch (const Error& error) {
    context_.log.error(error.what());
    throw Interrupted("train",
                      cat("interrupted, and nothing could be saved: ", signal == 0 ? "cause=" : "signal=", cause,
                          ", step=", state_.position.iteration),
                      "See the reason above. Earlier checkpoints are untouched, and --resume continues from the newest");
  }
  parts_.checkpoints.prune();
  say_checkpoints();
  tell_saved();
  parts_.health.saved(parts_.checkpoints.newest());
  parts_.health.end("interrupted");
  context_.log.info(
      cat("Interrupted by ", cause, " at step ", state_.position.iteration, ": saved ", parts_.checkpoints.newest()));
  const std::string& command = context_.resume_command;
  context_.log.info(command.empty() ? "Start it as before with --resume to continue" : cat("Continue with: ", command));
}

}  // namespace welkin::train
