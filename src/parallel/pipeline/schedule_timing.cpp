// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/schedule_timing.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

// Times by stage and micro-batch; a Backward counts as both halves.
using PassTimes = std::map<std::pair<int64_t, int64_t>, double>;

std::string text_of(const Pass& pass) {
  constexpr std::array kKinds{"forward", "backward", "backward of input", "backward of weights"};
  return cat(kKinds[static_cast<size_t>(pass.kind)], " of micro-batch ", pass.micro, " in stage ", pass.stage);
}

bool ends_activation(PassKind kind) { return kind == PassKind::Backward || kind == PassKind::BackwardWeight; }

class Simulation {
 public:
  Simulation(const Schedule& schedule, const PassCosts& costs)
      : schedule_(schedule), costs_(costs), next_(schedule.rows.size(), 0), free_at_(schedule.rows.size(), 0) {
    timing_.rows.resize(schedule.rows.size());
  }

  ScheduleTiming run() {
    while (advance()) {
    }
    finish();
    return std::move(timing_);
  }

  // The passes at which ranks are stuck; empty if all have finished.
  std::string stuck() const {
    std::vector<std::string> waiting;
    for (size_t rank = 0; rank < next_.size(); ++rank) {
      if (next_[rank] == schedule_.rows[rank].size()) continue;
      waiting.push_back(cat("rank ", rank, " at ", text_of(schedule_.rows[rank][next_[rank]])));
    }
    return join(waiting, ", ");
  }

 private:
  // Advances every rank that can continue; false if none can.
  bool advance() {
    bool moved = false;
    for (size_t rank = 0; rank < next_.size(); ++rank) {
      while (next_[rank] < schedule_.rows[rank].size()) {
        const Pass& pass = schedule_.rows[rank][next_[rank]];
        const std::optional<double> ready = ready_at(pass);
        if (!ready) break;
        make(rank, pass, *ready);
        moved = true;
      }
    }
    return moved;
  }

  void make(size_t rank, const Pass& pass, double ready) {
    const double begin = std::max(ready, free_at_[rank]);
    const double of_stage = costs_.stages.empty() ? 1 : costs_.stages[static_cast<size_t>(schedule_.shape.of_model(pass.stage))];
    const double end = begin + of_stage * costs_.of(pass.kind) / static_cast<double>(schedule_.shape.chunks);
    free_at_[rank] = end;
    ++next_[rank];
    timing_.rows[rank].push_back({pass, begin, end});
    const std::pair place{pass.stage, pass.micro};
    if (pass.kind == PassKind::Forward) forward_[place] = end;
    if (pass.kind == PassKind::Backward || pass.kind == PassKind::BackwardInput) input_[place] = end;
  }

  // The time at which the input of the pass is available; nothing if not known yet.
  std::optional<double> ready_at(const Pass& pass) const {
    const std::pair own{pass.stage, pass.micro};
    if (pass.kind == PassKind::Forward) {
      return pass.stage == 0 ? std::optional(0.0) : arrival(forward_, {pass.stage - 1, pass.micro});
    }
    if (pass.kind == PassKind::BackwardWeight) return found(input_, own);
    const std::optional<double> forward = found(forward_, own);
    if (!forward || pass.stage + 1 == schedule_.shape.chain()) return forward;
    return arrival(input_, {pass.stage + 1, pass.micro});
  }

  std::optional<double> arrival(const PassTimes& times, std::pair<int64_t, int64_t> place) const {
    const std::optional<double> sent = found(times, place);
    if (!sent || schedule_.shape.ranks == 1) return sent;
    return *sent + costs_.transfer;
  }

  static std::optional<double> found(const PassTimes& times, std::pair<int64_t, int64_t> place) {
    const auto at = times.find(place);
    return at == times.end() ? std::nullopt : std::optional(at->second);
  }

  void finish() {
    double work = 0;
    for (const auto& row : timing_.rows) {
      double held = 0, most = 0;
      for (const TimedPass& timed : row) {
        work += timed.end - timed.begin;
        timing_.length = std::max(timing_.length, timed.end);
        const bool is_held = timed.pass.stage >= schedule_.shape.first_with_gradient();
        if (timed.pass.kind == PassKind::Forward && is_held) most = std::max(most, ++held);
        if (ends_activation(timed.pass.kind)) --held;
      }
      timing_.held.push_back(most / static_cast<double>(schedule_.shape.chunks));
    }
    if (timing_.length > 0) timing_.bubble = 1 - work / (timing_.length * static_cast<double>(timing_.rows.size()));
  }

  const Schedule& schedule_;
  const PassCosts& costs_;
  std::vector<size_t> next_;
  std::vector<double> free_at_;
  PassTimes forward_, input_;  // end times
  ScheduleTiming timing_;
};

// Checks that every stage has one forward pass per micro-batch, and one backward pass if it has a gradient, on its own rank.
std::string problem_of_passes(const Schedule& schedule) {
  std::map<std::tuple<int64_t, int64_t>, std::array<int64_t, 4>> counts;
  for (size_t rank = 0; rank < schedule.rows.size(); ++rank) {
    for (const Pass& pass : schedule.rows[rank]) {
      if (schedule.shape.rank_of(pass.stage) != static_cast<int64_t>(rank)) return cat(text_of(pass), " is on rank ", rank);
      ++counts[{pass.stage, pass.micro}][static_cast<size_t>(pass.kind)];
    }
  }
  for (int64_t stage = 0; stage < schedule.shape.chain(); ++stage) {
    const int64_t backward = stage < schedule.shape.first_with_gradient() ? 0 : 1;
    for (int64_t micro = 0; micro < schedule.shape.micros; ++micro) {
      const auto [forward, whole, input, weight] = counts[{stage, micro}];
      const bool once = forward == 1 && whole + input == backward && input == weight;
      if (!once) return cat("micro-batch ", micro, " does not go once forward and once backward through stage ", stage);
    }
  }
  return "";
}

}  // namespace

double PassCosts::of(PassKind kind) const {
  switch (kind) {
    case PassKind::Forward:
      return forward;
    case PassKind::Backward:
      return backward_input + backward_weight;
    case PassKind::BackwardInput:
      return backward_input;
    case PassKind::BackwardWeight:
      break;
  }
  return backward_weight;
}

std::vector<double> held_with_waiting(const Schedule& schedule, double waiting) {
  std::vector<double> held;
  for (const std::vector<Pass>& row : schedule.rows) {
    double now = 0, most = 0;
    for (const Pass& pass : row) {
      if (pass.kind == PassKind::Forward) now += pass.stage >= schedule.shape.first_with_gradient() ? 1 : 0;
      if (pass.kind == PassKind::Backward) --now;
      if (pass.kind == PassKind::BackwardInput) now += waiting - 1;
      if (pass.kind == PassKind::BackwardWeight) now -= waiting;
      most = std::max(most, now);
    }
    held.push_back(most / static_cast<double>(schedule.shape.chunks));
  }
  return held;
}

ScheduleTiming time_schedule(const Schedule& schedule, const PassCosts& costs) {
  const std::string problem = problem_of(schedule);
  WELKIN_CHECK(problem.empty(), cat("the schedule of a pipeline is sound: ", problem));
  return Simulation(schedule, costs).run();
}

std::string problem_of(const Schedule& schedule) {
  if (std::string problem = problem_of_passes(schedule); !problem.empty()) return problem;
  const PassCosts costs;
  Simulation simulation(schedule, costs);
  simulation.run();
  const std::string stuck = simulation.stuck();
  return stuck.empty() ? "" : cat("passes wait for each other: ", stuck);
}

std::optional<double> promised_bubble(config::PipelineSchedule kind, const PipelineShape& shape, const PassCosts& costs) {
  const auto others = static_cast<double>(shape.ranks - 1), micros = static_cast<double>(shape.micros);
  if (shape.leads > 1 && (shape.only_last || kind == config::PipelineSchedule::ZeroBubble)) return {};
  if (shape.leads > 1) {
    const auto turns = static_cast<double>(shape.leads * shape.chunks);
    return 1 - turns * micros / ((turns - 1) * std::max(micros, others + 1) + micros + others);
  }
  if (kind == config::PipelineSchedule::ZeroBubble) {
    const double all = costs.forward + costs.backward_input + costs.backward_weight;
    const double waiting = std::min(micros, others + 1) - 1;  // micro-batches whose weight gradients fill idle time
    const double idle = others * (costs.forward + costs.backward_input) - waiting * costs.backward_weight;
    return idle / (micros * all + idle);
  }
  return others / (static_cast<double>(shape.chunks) * micros + others);
}

}  // namespace welkin::parallel
