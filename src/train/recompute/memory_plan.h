// SPDX-License-Identifier: Apache-2.0
// Which parts of a model run again in the backward pass, for a step that takes no more than a budget and the least time: a
// multiple-choice knapsack (Kellerer, Pferschy, Pisinger 2004, "Knapsack Problems", chapter 11) whose constraint is the highest
// level of memory over the step, solved by dynamic programming over the parts in the order of the forward pass. Arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace welkin::train {

// One way to run a part. Levels are of the whole process, in bytes, while every other part keeps as little as it can.
struct PartOption {
  int64_t kept = 0;           // between its forward and its backward pass, beyond what its smallest option keeps
  int64_t forward_peak = 0;   // the highest level during its forward pass
  int64_t backward_peak = 0;  // and during its backward pass, with what runs again
  double seconds = 0;         // of a step, for what runs again
};

struct MemoryPart {
  std::vector<PartOption> options;  // at least one
  int64_t peak_after_forward = 0;   // the highest level from its forward pass to the next part's, or to the first backward pass
  int64_t peak_after_backward = 0;  // from its backward pass to that of the part before it, or to the end
};

// Of one step; parts follow each other in the forward pass and come back in the reverse order.
struct StepMemory {
  std::vector<MemoryPart> parts;
  int64_t peak_elsewhere = 0;  // while no part keeps anything
  double seconds = 0;          // of a step in which nothing runs again
};

struct MemoryPlan {
  std::vector<size_t> options;  // by part
  int64_t peak = 0;
  double seconds = 0;  // of the step
};

// What a choice of options takes.
MemoryPlan plan_with(const StepMemory& step, std::vector<size_t> options);

// The fastest plan whose peak is at most `budget`; nothing where there is none. Of equally fast ones that which keeps least.
//
// What parts keep is counted in grains of 1/65536 of what all parts may keep together (at least a byte), rounded up. So a state
// per grain suffices, a plan never exceeds the budget, and the time is the least of all plans that stay under it by one grain a
// part. Parts with equal options, as the equal blocks of a model, meet in the same states: of n such parts with m options there
// are at most (n + m)! / (n! m!).
std::optional<MemoryPlan> fastest_plan(const StepMemory& step, int64_t budget);

// The plan with the smallest peak, up to the grains.
MemoryPlan smallest_plan(const StepMemory& step);

}  // namespace welkin::train
