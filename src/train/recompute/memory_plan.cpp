// SPDX-License-Identifier: Apache-2.0
#include "train/recompute/memory_plan.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace welkin::train {
namespace {

constexpr int64_t kGrains = 65536;

// The bytes that the parts so far keep, and the choices that led there.
struct KnapsackState {
  int64_t grains = 0;
  double seconds = 0;
  size_t before = 0;  // state of the part before
  size_t option = 0;
};

using Front = std::vector<KnapsackState>;  // more grains, less time

int64_t most_kept(const MemoryPart& part) { return std::ranges::max(part.options, {}, &PartOption::kept).kept; }

int64_t grain_of(const StepMemory& step) {
  int64_t all = 0;
  for (const MemoryPart& part : step.parts) all += most_kept(part);
  return std::max<int64_t>(1, (all + kGrains - 1) / kGrains);
}

int64_t peak_of(const MemoryPart& part, const PartOption& option, int64_t kept_before, int64_t kept) {
  return std::max({option.forward_peak + kept_before, option.backward_peak + kept_before, part.peak_after_backward + kept_before,
                   part.peak_after_forward + kept});
}

// The states that no other state beats by keeping no more and taking no more time.
Front unbeaten(Front states) {
  std::ranges::sort(states, [](const KnapsackState& a, const KnapsackState& b) {
    return std::tie(a.grains, a.seconds, a.option, a.before) < std::tie(b.grains, b.seconds, b.option, b.before);
  });
  Front front;
  for (const KnapsackState& state : states) {
    if (front.empty() || state.seconds < front.back().seconds) front.push_back(state);
  }
  return front;
}

Front next_front(const MemoryPart& part, const Front& before, int64_t grain, int64_t budget) {
  Front states;
  for (size_t i = 0; i < before.size(); ++i) {
    for (size_t option = 0; option < part.options.size(); ++option) {
      const PartOption& way = part.options[option];
      const int64_t grains = before[i].grains + (way.kept + grain - 1) / grain;
      if (peak_of(part, way, before[i].grains * grain, grains * grain) > budget) continue;
      states.push_back({grains, before[i].seconds + way.seconds, i, option});
    }
  }
  return unbeaten(std::move(states));
}

}  // namespace

MemoryPlan plan_with(const StepMemory& step, std::vector<size_t> options) {
  MemoryPlan plan{.options = std::move(options), .peak = step.peak_elsewhere, .seconds = step.seconds};
  int64_t kept = 0;
  for (size_t i = 0; i < step.parts.size(); ++i) {
    const PartOption& option = step.parts[i].options.at(plan.options.at(i));
    plan.peak = std::max(plan.peak, peak_of(step.parts[i], option, kept, kept + option.kept));
    plan.seconds += option.seconds;
    kept += option.kept;
  }
  return plan;
}

std::optional<MemoryPlan> fastest_plan(const StepMemory& step, int64_t budget) {
  if (step.peak_elsewhere > budget) return std::nullopt;
  const int64_t grain = grain_of(step);
  std::vector<Front> fronts{{KnapsackState{}}};
  for (const MemoryPart& part : step.parts) {
    fronts.push_back(next_front(part, fronts.back(), grain, budget));
    if (fronts.back().empty()) return std::nullopt;
  }
  std::vector<size_t> options(step.parts.size());
  size_t state = fronts.back().size() - 1;  // the fastest
  for (size_t part = options.size(); part-- > 0;) {
    options[part] = fronts[part + 1][state].option;
    state = fronts[part + 1][state].before;
  }
  return plan_with(step, std::move(options));
}

// A smaller budget allows no more plans: the border is between one that allows none and one that allows some.
MemoryPlan smallest_plan(const StepMemory& step) {
  std::vector<size_t> least;
  for (const MemoryPart& part : step.parts) {
    least.push_back(static_cast<size_t>(std::ranges::min_element(part.options, {}, &PartOption::kept) - part.options.begin()));
  }
  MemoryPlan best = plan_with(step, std::move(least));
  int64_t none = 0;
  while (none + 1 < best.peak) {
    const int64_t middle = none + (best.peak - none) / 2;
    if (auto plan = fastest_plan(step, middle)) {
      best = *plan;
    } else {
      none = middle;
    }
  }
  return best;
}

}  // namespace welkin::train
