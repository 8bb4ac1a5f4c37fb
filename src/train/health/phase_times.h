// SPDX-License-Identifier: Apache-2.0
// The time that this rank's steps spend in each phase, by their spans, and which ranks take longer than the others. Phases in
// which ranks wait for each other (reduce) say nothing about one of them and are left out.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "observe/timeline/span.h"

namespace welkin::train {

inline constexpr std::array<std::string_view, 4> kTimedPhases{"fetch", "forward", "backward", "optimizer"};
using PhaseSeconds = std::array<double, kTimedPhases.size()>;

struct SlowRank {
  int64_t rank = 0;
  std::string_view phase;
  double factor = 1;  // ratio to the median of all ranks
};

// Ranks whose time in a phase is more than `factor` times the median of all ranks, and longer by more than a twentieth of the
// sum of all phases' medians: short phases vary. For each rank the phase that costs it most.
std::vector<SlowRank> find_slow_ranks(const std::vector<PhaseSeconds>& of_ranks, double factor);

class PhaseTimes : public observe::SpanSink {
 public:
  // `next` receives every span after it; null: no listener follows.
  explicit PhaseTimes(observe::SpanSink* next) : next_(next) {}

  // Seconds per phase since the last call.
  PhaseSeconds take();

  void begin(std::string_view name) noexcept override;
  void end(std::string_view name, observe::SpanClock::time_point began) noexcept override;
  void record(std::string_view lane, std::string_view name, observe::SpanClock::time_point began,
              observe::SpanClock::time_point ended) noexcept override;

 private:
  observe::SpanSink* next_;
  PhaseSeconds seconds_{};
  std::array<observe::SpanClock::time_point, kTimedPhases.size()> began_{};  // begin times of the phases under way
};

}  // namespace welkin::train
