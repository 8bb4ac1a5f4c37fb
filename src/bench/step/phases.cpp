// SPDX-License-Identifier: Apache-2.0
#include "bench/step/phases.h"

#include <algorithm>

namespace welkin::bench {

void PhaseClock::end(std::string_view name, observe::SpanClock::time_point began) noexcept {
  const auto found = std::ranges::find(kPhases, name);
  if (found == kPhases.end()) return;
  const double seconds = std::chrono::duration<double>(observe::SpanClock::now() - began).count();
  const std::lock_guard lock(mutex_);
  seconds_[static_cast<size_t>(found - kPhases.begin())] += seconds;
}

void PhaseClock::clear() {
  const std::lock_guard lock(mutex_);
  seconds_.fill(0);
}

std::vector<Phase> PhaseClock::per_step(int64_t steps) const {
  const std::lock_guard lock(mutex_);
  std::vector<Phase> phases;
  for (size_t i = 0; i < kPhases.size(); ++i) {
    phases.push_back({kPhases[i], steps > 0 ? seconds_[i] / static_cast<double>(steps) : 0});
  }
  return phases;
}

std::string_view longest_phase(const std::vector<Phase>& phases) {
  const auto longest = std::ranges::max_element(phases, {}, &Phase::seconds);
  return longest == phases.end() || longest->seconds <= 0 ? std::string_view() : longest->name;
}

}  // namespace welkin::bench
