// SPDX-License-Identifier: Apache-2.0
#include "train/step/step_probe.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/stopwatch.h"
#include "ops/base/recompute.h"
#include "parallel/comm/collectives.h"
#include "train/device/device_memory.h"
#include "train/recompute/activation_checkpointing.h"
#include "train/recompute/recomputable_parts.h"
#include "train/step/probe_steps.h"

namespace welkin::train {
namespace {

constexpr size_t kNone = 0, kWhole = 1;  // options of every part
constexpr int kTimedSteps = 2;

// Highest levels of memory by part, and the level between a forward pass and its backward pass, which shows what options keep.
// The level right behind a part does not: its user may copy the result, which is then only kept if the part keeps it.
struct StepLevels {
  explicit StepLevels(size_t parts = 0) : forward(parts), after_forward(parts), backward(parts), after_backward(parts) {}
  std::vector<int64_t> forward, after_forward, backward, after_backward;
  int64_t elsewhere = 0, turn = 0;
};

template <typename Number>
Number median(std::vector<Number> numbers) {
  std::ranges::sort(numbers);
  return numbers.empty() ? Number{} : numbers[numbers.size() / 2];
}

class StepProbe {
 public:
  StepProbe(const Layout& layout, const SetupSource& source, const RunLength& length)
      : source_(source), steps_(layout, source, length, [this](model::Model& model, const parallel::ParamTable& table) {
          install(model, table);
        }) {}

  ProbedStep measure() {
    for (int i = 0; i < kTimedSteps + 1; ++i) run_with({}, kWhole);
    forget_first_step();
    base_ = levels_;
    for (size_t part = 0; part < parts_.parts.size(); ++part) {
      if (representative_of(part) == part) measure_options(part);
    }
    ProbedStep probed{.memory = summed_up(), .again = names()};
    agree(probed.memory);
    return probed;
  }

 private:
  struct Measured {
    StepLevels levels;
    size_t part = 0, option = 0;
  };

  void install(model::Model& model, const parallel::ParamTable& table) {
    parts_ = recomputable_parts(model, table);
    again_.resize(parts_.sites.size());
    part_of_.resize(parts_.sites.size());
    seconds_.resize(parts_.sites.size());
    for (size_t part = 0; part < parts_.parts.size(); ++part) part_of_[parts_.parts[part].sites.front()] = part;
    for (size_t site = 0; site < parts_.sites.size(); ++site) {
      const auto weights = weights_at(*parts_.sites[site], table);
      parts_.sites[site]->install([this, site, weights](model::Tensors in, const model::Body& body) {
        if (!at::GradMode::is_enabled()) return body(std::move(in));
        return part_of_[site] ? pass_part(*part_of_[site], site, std::move(in), body, weights)
                              : pass_site(site, std::move(in), body, weights);
      });
    }
  }

  model::Tensors pass_site(size_t site, model::Tensors in, const model::Body& body, const std::vector<at::Tensor>& weights) {
    const model::Body timed = [this, site, body](model::Tensors inner) { return run_timed(site, std::move(inner), body); };
    return again_[site] ? ops::recomputed(timed, in, weights) : timed(std::move(in));
  }

  // Times a forward pass with a graph: this is what runs again.
  model::Tensors run_timed(size_t site, model::Tensors in, const model::Body& body) {
    if (!at::GradMode::is_enabled()) return body(std::move(in));
    settle(source_.device);
    const Stopwatch watch;
    model::Tensors out = body(std::move(in));
    settle(source_.device);
    site_seconds_[site] += watch.seconds();
    return out;
  }

  model::Tensors pass_part(size_t part, size_t site, model::Tensors in, const model::Body& body,
                           const std::vector<at::Tensor>& weights) {
    enter(levels_.forward[part]);
    is_going_back_ = false;
    const at::Tensor first = in.front();
    model::Tensors out = pass_site(site, std::move(in), body, weights);
    enter(levels_.after_forward[part]);
    for (const at::Tensor& x : out) {
      if (x.requires_grad()) x.register_hook([this, part](const at::Tensor&) { go_back(part); });
    }
    if (first.requires_grad()) {
      first.register_hook([this, part](const at::Tensor&) {
        if (current_ == &levels_.backward[part]) enter(levels_.after_backward[part]);
      });
    }
    return out;
  }

  void go_back(size_t part) {
    if (!is_going_back_) levels_.turn = memory_allocated(source_.device);
    is_going_back_ = true;
    enter(levels_.backward[part]);
  }

  // Later allocations count for this level.
  void enter(int64_t& level) {
    *current_ = std::max(*current_, max_memory_allocated(source_.device));
    reset_peak_memory(source_.device);
    current_ = &level;
  }

  // Makes one step in which `part` takes the option and all others run again whole.
  void run_with(std::optional<size_t> part, size_t option) {
    std::fill(again_.begin(), again_.end(), false);
    for (size_t i = 0; i < parts_.parts.size(); ++i) choose(i, part == i ? option : kWhole);
    levels_ = StepLevels(parts_.parts.size());
    site_seconds_.assign(parts_.sites.size(), 0);
    current_ = &levels_.elsewhere;
    reset_peak_memory(source_.device);
    const Stopwatch watch;
    steps_.run();
    step_seconds_.push_back({watch.seconds(), part, option});
    enter(levels_.elsewhere);
    if (part) return;
    for (size_t site = 0; site < parts_.sites.size(); ++site) seconds_[site].push_back(site_seconds_[site]);
  }

  // Drops the first step: it also made what is kept from step to step.
  void forget_first_step() {
    step_seconds_.erase(step_seconds_.begin());
    for (std::vector<double>& seconds : seconds_) seconds.erase(seconds.begin());
  }

  void choose(size_t part, size_t option) {
    for (const size_t place : parts_.parts[part].options[option]) again_[parts_.parts[part].sites[place]] = true;
  }

  // The middle one of the parts equal to it.
  size_t representative_of(size_t part) const {
    std::vector<size_t> equal;
    for (size_t i = 0; i < parts_.parts.size(); ++i) {
      if (parts_.parts[i].kind == parts_.parts[part].kind) equal.push_back(i);
    }
    return equal[equal.size() / 2];
  }

  void measure_options(size_t part) {
    for (size_t option = 0; option < parts_.parts[part].options.size(); ++option) {
      if (option != kWhole) run_with(part, option);
      measured_.push_back({option == kWhole ? base_ : levels_, part, option});
    }
  }

  const StepLevels& levels_with(size_t part, size_t option) const {
    return std::ranges::find_if(measured_, [&](const Measured& one) { return one.part == part && one.option == option; })->levels;
  }

  // Time of a place in equal parts: the median over them, each at its fastest.
  double seconds_at(size_t part, size_t place) const {
    std::vector<double> fastest;
    for (const RecomputablePart& other : parts_.parts) {
      if (other.kind == parts_.parts[part].kind) fastest.push_back(std::ranges::min(seconds_[other.sites[place]]));
    }
    return median(std::move(fastest));
  }

  double seconds_of(size_t part, size_t option) const {
    double sum = 0;
    for (const size_t place : parts_.parts[part].options[option]) sum += seconds_at(part, place);
    return sum;
  }

  // The time of a step without recomputation: the median of measured steps less the time of their recomputation.
  double seconds_of_plain_step() const {
    std::vector<double> plain;
    for (const TimedStep& step : step_seconds_) {
      plain.push_back(step.seconds);
      for (size_t i = 0; i < parts_.parts.size(); ++i) plain.back() -= seconds_of(i, step.part == i ? step.option : kWhole);
    }
    return median(std::move(plain));
  }

  int64_t level_of_run(int64_t level) const { return level - steps_.extra_bytes() + source_.later_bytes; }

  // The difference that an option makes to the measured part is taken for its equals too.
  PartOption option_of(size_t part, size_t option) const {
    const size_t measured = representative_of(part);
    const StepLevels &with = levels_with(measured, option), &base = base_;
    int64_t least = with.turn;
    for (size_t other = 0; other < parts_.parts[part].options.size(); ++other) {
      least = std::min(least, levels_with(measured, other).turn);
    }
    return {.kept = with.turn - least,
            .forward_peak = level_of_run(base.forward[part] + with.forward[measured] - base.forward[measured]),
            .backward_peak = level_of_run(base.backward[part] + with.backward[measured] - base.backward[measured]),
            .seconds = seconds_of(part, option)};
  }

  StepMemory summed_up() const {
    StepMemory memory{.parts = {}, .peak_elsewhere = level_of_run(base_.elsewhere), .seconds = seconds_of_plain_step()};
    for (size_t i = 0; i < parts_.parts.size(); ++i) {
      MemoryPart part{.options = {},
                      .peak_after_forward = level_of_run(base_.after_forward[i]),
                      .peak_after_backward = level_of_run(base_.after_backward[i])};
      for (size_t option = 0; option < parts_.parts[i].options.size(); ++option) part.options.push_back(option_of(i, option));
      memory.parts.push_back(std::move(part));
    }
    return memory;
  }

  std::vector<std::vector<std::vector<std::string>>> names() const {
    std::vector<std::vector<std::vector<std::string>>> all;
    for (const RecomputablePart& part : parts_.parts) {
      auto& options = all.emplace_back();
      for (const std::vector<size_t>& places : part.options) {
        auto& sites = options.emplace_back();
        for (const size_t place : places) sites.push_back(parts_.sites[part.sites[place]]->name());
      }
    }
    return all;
  }

  // Takes the largest values of all ranks, in one message. Doubles hold the bytes exactly.
  void agree(StepMemory& memory) const {
    if (source_.world_group.size() == 1) return;
    std::vector<double> values;
    visit(memory, [&](auto& value) { values.push_back(static_cast<double>(value)); });
    const at::Tensor own = at::tensor(values, at::kDouble).to(source_.device);
    const at::Tensor most = parallel::all_reduce(source_.world_group, own, parallel::Reduction::Max).cpu();
    const auto* next = most.const_data_ptr<double>();
    visit(memory, [&](auto& value) { value = static_cast<std::remove_reference_t<decltype(value)>>(*next++); });
  }

  template <typename Visitor>
  static void visit(StepMemory& memory, const Visitor& visitor) {
    visitor(memory.peak_elsewhere);
    visitor(memory.seconds);
    for (MemoryPart& part : memory.parts) {
      visitor(part.peak_after_forward);
      visitor(part.peak_after_backward);
      for (PartOption& option : part.options) {
        visitor(option.kept);
        visitor(option.forward_peak);
        visitor(option.backward_peak);
        visitor(option.seconds);
      }
    }
  }

  struct TimedStep {
    double seconds = 0;
    std::optional<size_t> part;
    size_t option = 0;
  };

  const SetupSource& source_;
  RecomputableParts parts_;
  std::vector<bool> again_;                     // by site
  std::vector<std::optional<size_t>> part_of_;  // by site: its part, if it is one
  std::vector<std::vector<double>> seconds_;    // by site: one per step in which all parts run again
  std::vector<double> site_seconds_;            // of this step
  std::vector<TimedStep> step_seconds_;
  StepLevels levels_, base_;  // of this step; of one in which all parts run again
  int64_t* current_ = nullptr;
  bool is_going_back_ = false;
  std::vector<Measured> measured_;
  ProbeSteps steps_;  // last: its constructor installs
};

}  // namespace

ProbedStep probe_step(const Layout& layout, const SetupSource& source, const RunLength& length) {
  return StepProbe(layout, source, length).measure();
}

}  // namespace welkin::train
