// SPDX-License-Identifier: Apache-2.0
// Durations of a step's phases, from the spans that Step marks. On a GPU these are the host's times, including its waits.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "observe/timeline/span.h"

namespace welkin::bench {

// In the order of a step. "copy" is to a GPU; a CPU uses the batch where it was read.
inline constexpr std::array<std::string_view, 6> kPhases{"fetch", "copy", "forward", "backward", "reduce", "optimizer"};

struct Phase {
  std::string_view name;
  double seconds = 0;
};

// Times of one layer, in the order of ModelCost::layers.
struct LayerSeconds {
  double forward = 0, backward = 0;
};

// Sums the spans of these names only.
class PhaseClock : public observe::SpanSink {
 public:
  void begin(std::string_view /*name*/) noexcept override {}
  void end(std::string_view name, observe::SpanClock::time_point began) noexcept override;

  void clear();
  // Seconds per step, for the number of steps since clear().
  std::vector<Phase> per_step(int64_t steps) const;

 private:
  mutable std::mutex mutex_;
  std::array<double, kPhases.size()> seconds_{};
};

// The longest phase; empty if none took any time.
std::string_view longest_phase(const std::vector<Phase>& phases);

}  // namespace welkin::bench
