// SPDX-License-Identifier: Apache-2.0
#include "train/health/phase_times.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace welkin::train {
namespace {

constexpr std::string_view kWaiting = "backward";  // with the exchange of gradients: ranks wait for each other in it

std::optional<size_t> phase_number(std::string_view name) {
  const auto* found = std::ranges::find(kTimedPhases, name);
  if (found == kTimedPhases.end()) return {};
  return static_cast<size_t>(found - kTimedPhases.begin());
}

// Of an even number of values it takes the lower middle one: of two ranks the slower one is compared with the faster one.
double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::vector<SlowRank> find_slow_ranks(const std::vector<PhaseSeconds>& of_ranks, double factor) {
  constexpr double kLeastShare = 0.05;
  PhaseSeconds medians{};
  for (size_t phase = 0; phase < medians.size(); ++phase) {
    std::vector<double> times;
    for (const PhaseSeconds& seconds : of_ranks) times.push_back(seconds[phase]);
    medians[phase] = lower_median(std::move(times));
  }
  const double least = kLeastShare * std::accumulate(medians.begin(), medians.end(), 0.0);
  std::vector<SlowRank> slow;
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    double most = least;
    std::optional<SlowRank> found;
    for (size_t phase = 0; phase < medians.size(); ++phase) {
      if (kTimedPhases.at(phase) == kWaiting) continue;
      const double seconds = of_ranks[rank][phase], more = seconds - medians[phase];
      if (seconds <= factor * medians[phase] || more <= most) continue;
      most = more;
      found = {static_cast<int64_t>(rank), kTimedPhases[phase], medians[phase] > 0 ? seconds / medians[phase] : 0};
    }
    if (found) slow.push_back(*found);
  }
  return slow;
}

PhaseSeconds PhaseTimes::take() { return std::exchange(seconds_, {}); }

// The begin time is taken here: the span takes its own only after its listeners ran.
void PhaseTimes::begin(std::string_view name) noexcept {
  if (const auto phase = phase_number(name)) began_[*phase] = observe::SpanClock::now();
  if (next_ != nullptr) next_->begin(name);
}

void PhaseTimes::end(std::string_view name, observe::SpanClock::time_point began) noexcept {
  if (next_ != nullptr) next_->end(name, began);
  if (const auto phase = phase_number(name)) {
    seconds_[*phase] += std::chrono::duration<double>(observe::SpanClock::now() - began_[*phase]).count();
  }
}

void PhaseTimes::record(std::string_view lane, std::string_view name, observe::SpanClock::time_point began,
                        observe::SpanClock::time_point ended) noexcept {
  if (next_ != nullptr) next_->record(lane, name, began, ended);
}

}  // namespace welkin::train
