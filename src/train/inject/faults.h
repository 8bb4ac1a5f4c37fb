// SPDX-License-Identifier: Apache-2.0
// The table of faults that `welkin train --inject` makes happen: the kind, the step and phase, the rank. Converts text to
// values, checked before anything runs; fault_injector.h makes the faults happen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::train {

enum class FaultKind {
  Kill,                // the process ends at once (SIGKILL)
  Stop,                // it is suspended (SIGSTOP)
  Slow,                // it waits for `seconds`
  Exception,           // an error is thrown
  NanGradient,         // a finite loss with gradients of NaN
  WrongGradient,       // gradients differ from those that the same numbers give a second time
  Spike,               // loss and gradients times `factor`
  FlipWeight,          // a bit of a weight
  TruncateCheckpoint,  // half of the largest file of the newest checkpoint
  FlipCheckpoint,      // a bit of that file
  WriteError,          // a stage of writing a checkpoint fails with `error`
  DropConnection,      // connections to other processes are shut down
  WrongTime,           // the time of day is off by `seconds`
};

// Places within a step. The last four are stages of writing a file of a checkpoint, on whatever thread writes it.
inline constexpr std::string_view kFaultPhases = "step|fetch|forward|backward|reduce|optimizer|create|write|sync|rename";

struct Fault {
  FaultKind kind = FaultKind::Kill;
  int64_t step = 1;               // the first at or after which it happens, from 1 as in the log; not in a start past it
  int64_t steps = 1;              // it happens in so many steps, if its kind can repeat
  std::optional<int64_t> rank{};  // nothing: on all ranks
  std::string phase = "step";     // of kFaultPhases
  int64_t after = 0;              // so many places of the phase pass first
  double seconds = 1;
  double factor = 1000;
  int error = 0;          // errno
  std::string parameter;  // FlipWeight: its name; empty: the first
  int64_t bit = 20;       // FlipWeight: of the first element
  std::string text;       // the text of the fault
};

// "kill:step=5,phase=backward,rank=1;slow:step=7,seconds=0.5", or the name of a file with one such fault per line and comments
// after #. Steps count from 1; ranks are below `world_size`, or `all`. ConfigError that names the wrong part.
std::vector<Fault> parse_faults(const std::string& text_or_file, int64_t world_size);

bool is_write_phase(std::string_view phase);
std::string_view name_of(FaultKind kind);

}  // namespace welkin::train
