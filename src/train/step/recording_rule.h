// SPDX-License-Identifier: Apache-2.0
// Decides which steps of a run are recorded and replayed. No device and no tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace welkin::train {

// The values that a recording fixes: steps with equal ones do the same work.
struct StepShape {
  std::vector<int64_t> input, target;  // sizes of the first micro-batch
  int64_t num_micro = 1;
  int64_t own_samples = 0;  // of this rank
  int64_t samples = 0;      // of all ranks, by which the loss is divided
  bool operator==(const StepShape&) const = default;
};

enum class StepPhase {
  WarmUp,  // eager, so that libraries choose algorithms and allocate workspaces
  Record,  // recorded, then replayed
  Replay,
  Eager,  // not recorded: another shape, or its forward pass is observed
};

// The first form that has been warmed up is recorded; others (a short last batch) run as they are.
class RecordingRule {
 public:
  explicit RecordingRule(int64_t warm_ups = kWarmUps) : warm_ups_(warm_ups) {}

  // The phase of the next step. `is_watched`: its forward pass is observed, so it must run eagerly.
  StepPhase next(const StepShape& form, bool is_watched);

  // Three, as PyTorch's CUDA graph notes require. More with several ranks: c10d's Reducer rebuilds its buckets after the first
  // step and measures the first ten.
  static constexpr int64_t kWarmUps = 3, kWarmUpsOfRanks = 11;

 private:
  int64_t warm_ups_;
  std::vector<std::pair<StepShape, int64_t>> seen_;  // and how often
  std::optional<StepShape> recorded_;
};

}  // namespace welkin::train
