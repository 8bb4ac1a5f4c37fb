// SPDX-License-Identifier: Apache-2.0
#include "observe/report/run_phases.h"

#include <algorithm>
#include <span>
#include <utility>

namespace welkin::observe {
namespace {

// Walks along the points of a tag, whose steps ascend.
class TagWalk {
 public:
  TagWalk(const RunHistory& run, const char* tag) {
    const auto found = run.scalars.by_tag.find(tag);
    if (found != run.scalars.by_tag.end()) points_ = found->second;
  }

  // The point of this step that is not earlier than `from`; null if there is none.
  const ScalarPoint* at(int64_t step, double from) {
    while (next_ < points_.size() && (points_[next_].step < step || points_[next_].wall_time < from)) ++next_;
    return next_ < points_.size() && points_[next_].step == step ? &points_[next_] : nullptr;
  }
  std::span<const ScalarPoint> points() const { return points_; }

 private:
  std::span<const ScalarPoint> points_;
  size_t next_ = 0;
};

// Merges neighbours of one kind while there are too many; `gap` is the largest time between them.
std::vector<RunPhase> put_together(std::vector<RunPhase> phases, size_t most) {
  if (phases.empty()) return phases;
  double gap = std::max((phases.back().end - phases.front().begin) / 1000, 1e-6);
  while (phases.size() > most) {
    std::vector<RunPhase> fewer;
    for (const RunPhase& phase : phases) {
      const bool is_short = !fewer.empty() && phase.end - phase.begin < gap && phase.begin - fewer.back().end < gap;
      const bool goes_on =
          !fewer.empty() && fewer.back().is_training == phase.is_training && phase.begin - fewer.back().end < gap;
      if (is_short || goes_on) {
        fewer.back().end = std::max(fewer.back().end, phase.end);
      } else {
        fewer.push_back(phase);
      }
    }
    phases = std::move(fewer);
    gap *= 2;
  }
  return phases;
}

}  // namespace

RunPhases run_phases(const RunHistory& run, size_t most) {
  const TagWalk rates(run, "Avg iters per sec");
  TagWalk train(run, "Loss/train"), valid(run, "Loss/valid");
  const double start = run.scalars.first_wall_time;
  RunPhases phases;
  int64_t steps_before = 0;
  double last = start;
  const auto add = [&](double begin, double end, bool is_training) {
    phases.shown.push_back({begin - start, end - start, is_training});
    (is_training ? phases.training_s : phases.validation_s) += end - begin;
    last = end;
  };
  for (const ScalarPoint& rate : rates.points()) {
    const ScalarPoint* trained = train.at(rate.step, last);
    if (trained == nullptr) continue;
    const double seconds = rate.value > 0 ? static_cast<double>(rate.step - steps_before) / rate.value : 0;
    add(std::max(trained->wall_time - std::max(seconds, 0.0), last), trained->wall_time, true);
    if (const ScalarPoint* validated = valid.at(rate.step, last); validated != nullptr) add(last, validated->wall_time, false);
    steps_before = rate.step;
  }
  phases.shown = put_together(std::move(phases.shown), most);
  return phases;
}

}  // namespace welkin::observe
