// SPDX-License-Identifier: Apache-2.0
#include "train/profile/step_window.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace welkin::train {
namespace {

[[noreturn]] void refuse_schedule(const std::string& text, const std::string& why) {
  throw ConfigError("profile", cat("no schedule of the profiler: profile=", text, ", ", why),
                    "Write on, or wait=1,warmup=1,active=3,repeat=1 with any of the four parts");
}

int64_t count_in(const std::string& text, std::string_view part) {
  int64_t value = -1;
  const std::string_view digits = part.substr(part.find('=') + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0 || value > 1'000'000)
    refuse_schedule(text, cat("not a number of steps: ", part));
  return value;
}

void set_part(ProfileSchedule& schedule, const std::string& text, std::string_view part) {
  const std::string_view name = part.substr(0, part.find('='));
  if (part.find('=') == std::string_view::npos) refuse_schedule(text, cat("no value: ", part));
  const int64_t value = count_in(text, part);
  if (name == "wait") {
    schedule.wait = value;
  } else if (name == "warmup") {
    schedule.warmup = value;
  } else if (name == "active") {
    schedule.active = value;
  } else if (name == "repeat") {
    schedule.repeat = value;
  } else {
    refuse_schedule(text, cat("unknown part: ", name));
  }
}

// "5" or "0-59", whole numbers.
std::vector<int64_t> numbers_in(const std::string& flag, const std::string& text) {
  std::vector<int64_t> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data();;) {
    const auto [stop, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error == std::errc() && numbers.back() >= 0 && stop == end) break;
    if (error != std::errc() || numbers.back() < 0 || *stop != '-' || numbers.size() > 1) numbers.clear();
    if (numbers.empty()) break;
    at = stop + 1;
  }
  if (!numbers.empty() && numbers.front() <= numbers.back()) return numbers;
  throw ConfigError("profile", cat("not a number or a range: --", flag, " ", text),
                    cat("Write --", flag, " 3, or --profile_steps 0-59"));
}

}  // namespace

ProfileOptions parse_profile_options(const std::map<std::string, std::string>& flags) {
  ProfileOptions options;
  const auto value = [&](const char* name) -> const std::string* {
    const auto found = flags.find(name);
    return found == flags.end() ? nullptr : &found->second;
  };
  if (const std::string* schedule = value("profile")) options.profile = schedule->empty() ? "on" : *schedule;
  if (!options.profile.empty()) parse_profile_schedule(options.profile);
  if (const std::string* timeline = value("timeline")) options.timeline = *timeline == "true";
  if (const std::string* epoch = value("profile_epoch")) {
    const auto numbers = numbers_in("profile_epoch", *epoch);
    if (numbers.size() != 1) numbers_in("profile_epoch", "");
    options.epoch = numbers.front();
  }
  if (const std::string* steps = value("profile_steps")) {
    options.steps = numbers_in("profile_steps", *steps);
    if (options.steps.size() == 1) options.steps.push_back(options.steps.front());
  }
  return options;
}

StepWindow step_window(const std::optional<int64_t>& epoch, const std::vector<int64_t>& steps, const RunPlaces& run) {
  const int64_t per_epoch = run.steps_per_epoch;
  const int64_t wanted_epoch = epoch.value_or(run.first / per_epoch);
  const int64_t in_run = std::clamp(wanted_epoch, run.first / per_epoch, run.last / per_epoch);
  const int64_t low = std::max(run.first, in_run * per_epoch), high = std::min(run.last, (in_run + 1) * per_epoch - 1);
  const auto place = [&](int64_t step) { return in_run * per_epoch + std::min(step, per_epoch); };  // per_epoch: beyond it
  const int64_t first = place(steps.empty() ? 0 : steps.front());
  const int64_t last = place(steps.empty() ? per_epoch - 1 : steps.back());
  StepWindow window{.begin = std::clamp(first, low, high), .end = 0, .note = {}};
  window.end = std::clamp(last, window.begin, high) + 1;
  const std::string run_text =
      cat("epochs ", run.first / per_epoch, " to ", run.last / per_epoch, " of ", per_epoch, per_epoch == 1 ? " step" : " steps");
  if (wanted_epoch != in_run || first > high || last < low) {
    window.note = cat("the window that was asked for is not in this run (", run_text, ")");
  } else if (!steps.empty() && (window.begin != first || window.end != last + 1)) {
    window.note = cat("of the steps ", steps.front(), " to ", steps.back(), " that were asked for, what this run has of them (",
                      run_text, ")");
  }
  return window;
}

ProfileSchedule parse_profile_schedule(const std::string& text) {
  ProfileSchedule schedule;
  if (text == "on") return schedule;
  std::string_view rest = text;
  std::set<std::string_view> given;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    if (const auto name = part.substr(0, part.find('=')); !given.insert(name).second) {
      refuse_schedule(text, cat("given twice: ", name));
    }
    set_part(schedule, text, part);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (schedule.active == 0) refuse_schedule(text, "active must be at least 1");
  return schedule;
}

ProfileSchedule fitted(ProfileSchedule schedule, int64_t steps) {
  const auto excess = [&] { return std::max<int64_t>(0, schedule.wait + schedule.warmup + schedule.active - steps); };
  schedule.wait -= std::min(schedule.wait, excess());
  schedule.warmup -= std::min(schedule.warmup, excess());
  schedule.active = std::max<int64_t>(1, schedule.active - excess());
  return schedule;
}

ProfilePhase phase_of(const ProfileSchedule& schedule, int64_t index) {
  const int64_t cycle = schedule.wait + schedule.warmup + schedule.active;
  if (schedule.repeat > 0 && index >= schedule.repeat * cycle) return ProfilePhase::Off;
  const int64_t in_cycle = index % cycle;
  if (in_cycle < schedule.wait) return ProfilePhase::Off;
  if (in_cycle < schedule.wait + schedule.warmup) return ProfilePhase::Warmup;
  return in_cycle + 1 == cycle ? ProfilePhase::RecordAndSave : ProfilePhase::Record;
}

}  // namespace welkin::train
