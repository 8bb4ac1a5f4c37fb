// SPDX-License-Identifier: Apache-2.0
// Chooses the parts of a model that run again in the backward pass, so that a step stays within a memory budget and takes the
// least time: a multiple-choice knapsack (Kellerer, Pferschy, Pisinger 2004, "Knapsack Problems", chapter 11). Its constraint
// is the peak memory of the step. Dynamic programming over the parts, in the order of the forward pass. Arithmetic.
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
  int64_t backward_peak = 0;  // and during its backward pass, with recomputation
  double seconds = 0;         // of a step, for recomputation
};

struct MemoryPart {
  std::vector<PartOption> options;  // at least one
  int64_t peak_after_forward = 0;   // the highest level from its forward pass to the next part's, or to the first backward pass
  int64_t peak_after_backward = 0;  // from its backward pass to that of the part before it, or to the end
};

// One step; parts follow each other in the forward pass and come back in the reverse order.
struct StepMemory {
  std::vector<MemoryPart> parts;
  int64_t peak_elsewhere = 0;  // while no part keeps anything
  double seconds = 0;          // of a step without recomputation
};

struct MemoryPlan {
  std::vector<size_t> options;  // by part
  int64_t peak = 0;
  double seconds = 0;  // of the step
};

// The plan of a choice of options.
MemoryPlan plan_with(const StepMemory& step, std::vector<size_t> options);

// The fastest plan whose peak is at most `budget`; nothing if there is none. Of equally fast plans the one that keeps least.
//
// Kept bytes are counted in grains of 1/65536 of what all parts may keep together (at least a byte), rounded up. So one state
// per grain suffices, a plan never exceeds the budget, and its time is the least of all plans that stay under it by one grain a
// part. Parts with equal options, like the equal blocks of a model, lead to the same states: n such parts with m options have
// at most (n + m)! / (n! m!).
std::optional<MemoryPlan> fastest_plan(const StepMemory& step, int64_t budget);

// The plan with the smallest peak, up to the grains.
MemoryPlan smallest_plan(const StepMemory& step);

}  // namespace welkin::train
