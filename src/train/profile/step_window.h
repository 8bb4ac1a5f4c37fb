// SPDX-License-Identifier: Apache-2.0
// The steps of a run that are recorded: a window of one epoch, and a profiler's schedule of waiting, warming up and recording.
// Pure arithmetic. A request beyond the run is moved into it: a window is never empty.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace welkin::train {

// Places in a run, counted over all epochs: epoch * steps_per_epoch + step within it.
struct RunPlaces {
  int64_t steps_per_epoch = 1;
  int64_t first = 0;  // the next step's
  int64_t last = 0;   // the last step's, at least `first`
};

struct StepWindow {
  int64_t begin = 0, end = 0;  // places [begin, end)
  std::string note;            // the reason if the request was moved or cut

  bool contains(int64_t place) const { return begin <= place && place < end; }
};

// `epoch` and `steps` (first and last within the epoch) count from 0; absent: the first epoch of the run, and all its steps.
StepWindow step_window(const std::optional<int64_t>& epoch, const std::vector<int64_t>& steps, const RunPlaces& run);

// The options of the command line; none of them is part of the run's configuration.
struct ProfileOptions {
  std::string profile;  // a schedule (below); empty: no trace
  bool timeline = false;
  std::optional<int64_t> epoch;  // from 0
  std::vector<int64_t> steps;    // first and last within the epoch, from 0; or empty
};

// Parses the values of the flags --profile (empty: on), --timeline, --profile_epoch and --profile_steps ("5" or "0-59").
// ConfigError names the wrong part.
ProfileOptions parse_profile_options(const std::map<std::string, std::string>& flags);

// As torch.profiler.schedule: `wait` steps without a record, `warmup` steps whose record is discarded, `active` steps that make
// one trace; repeated `repeat` times, 0: until the run ends.
struct ProfileSchedule {
  int64_t wait = 1, warmup = 1, active = 3, repeat = 1;
};
enum class ProfilePhase { Off, Warmup, Record, RecordAndSave };

// "on", or "wait=2,warmup=2,active=5,repeat=1", each part optional. ConfigError names the wrong part.
ProfileSchedule parse_profile_schedule(const std::string& text);

// Fits the first trace into a run of `steps` steps: less waiting, then less warming up, then fewer steps of the trace.
ProfileSchedule fitted(ProfileSchedule schedule, int64_t steps);

// The phase of step `index`, counted from 0.
ProfilePhase phase_of(const ProfileSchedule& schedule, int64_t index);

}  // namespace welkin::train
