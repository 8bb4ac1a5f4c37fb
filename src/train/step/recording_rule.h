// SPDX-License-Identifier: Apache-2.0
// Which steps of a run are recorded and replayed, and which are not. No device and no tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace welkin::train {

// What a recording has fixed: steps are the same work where these are equal.
struct StepForm {
  std::vector<int64_t> input, target;  // sizes of the first micro-batch
  int64_t num_micro = 1;
  int64_t own_samples = 0;  // of this rank
  int64_t samples = 0;      // of all ranks, by which the loss is divided
  bool operator==(const StepForm&) const = default;
};

enum class StepPhase {
  WarmUp,  // as it is, so that libraries choose their algorithms and take their workspaces
  Record,  // recorded, then replayed
  Replay,
  Eager,  // as it is: of another form, or looked at from outside
};

// The first form that has been warmed up is recorded; others (a short last batch) run as they are.
class RecordingRule {
 public:
  explicit RecordingRule(int64_t warm_ups = kWarmUps) : warm_ups_(warm_ups) {}

  // Of the next step. `is_watched`: somebody looks into it, so it has to run as it is.
  StepPhase next(const StepForm& form, bool is_watched);

  // As PyTorch's notes ask for. Of several ranks more: c10d's Reducer cuts its buckets anew after the first step and takes the
  // times of the first ten.
  static constexpr int64_t kWarmUps = 3, kWarmUpsOfRanks = 11;

 private:
  int64_t warm_ups_;
  std::vector<std::pair<StepForm, int64_t>> seen_;  // and how often
  std::optional<StepForm> recorded_;
};

}  // namespace welkin::train
