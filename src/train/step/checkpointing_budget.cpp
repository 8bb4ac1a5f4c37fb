// SPDX-License-Identifier: Apache-2.0
#include "train/step/checkpointing_budget.h"

#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "train/device/memory_limit.h"

namespace welkin::train {
namespace {

std::string text_of_bytes(int64_t bytes) { return format_bytes(static_cast<uint64_t>(bytes)); }

// Rounded to three digits.
double rounded_seconds(double seconds) {
  const double unit = std::pow(10.0, std::floor(std::log10(std::max(seconds, 1e-6))) - 2);
  return std::round(seconds / unit) * unit;
}

std::string text_of_plan(const MemoryPlan& plan) {
  return cat(text_of_bytes(plan.peak), " at the peak, ", rounded_seconds(plan.seconds), " s a step");
}

// Rounded up, so that it is enough.
double gib_above(int64_t bytes) { return std::ceil(static_cast<double>(bytes) / (int64_t{1} << 30) * 1000) / 1000; }

[[noreturn]] void refuse(const StepMemory& step, const MemoryPlan& plain, const config::RunConfig& config) {
  const MemoryPlan least = smallest_plan(step);
  throw ConfigError("activation_checkpointing",
                    cat("a step takes more than the budget, whatever runs again: budget=",
                        text_of_bytes(bytes_of_limit(config.loop.activation_checkpointing.budget_gib)),
                        ", least possible=", text_of_bytes(least.peak), ", with nothing run again=", text_of_bytes(plain.peak),
                        ", model=", config.model.model),
                    cat("Say at least budget:", gib_above(least.peak), ", or take a smaller --micro_batch_size"));
}

}  // namespace

BudgetChoice choose_within(const ProbedStep& probed, const config::RunConfig& config) {
  const MemoryPlan plain = plan_with(probed.memory, std::vector<size_t>(probed.memory.parts.size(), 0));
  const auto plan = fastest_plan(probed.memory, bytes_of_limit(config.loop.activation_checkpointing.budget_gib));
  if (!plan) refuse(probed.memory, plain, config);
  BudgetChoice choice{.sites = {}, .peak_bytes = plan->peak, .step_seconds = plan->seconds, .note = {}};
  for (size_t part = 0; part < plan->options.size(); ++part) {
    const auto& sites = probed.again[part][plan->options[part]];
    choice.sites.insert(choice.sites.end(), sites.begin(), sites.end());
  }
  choice.note = cat("Activation checkpointing within ", config.loop.activation_checkpointing.budget_gib,
                    " GiB: ", choice.sites.empty() ? "nothing runs again" : cat(join(choice.sites, ", "), " run again"),
                    "; predicted ", text_of_plan(*plan), " (with nothing run again ", text_of_plan(plain), ")");
  return choice;
}

BudgetChoice choose_for_budget(const Layout& layout, const SetupSource& source, const RunLength& length) {
  return choose_within(probe_step(layout, source, length), source.config);
}

}  // namespace welkin::train
