// SPDX-License-Identifier: Apache-2.0
#include "train/step/recording_rule.h"

#include <algorithm>

namespace welkin::train {

StepPhase RecordingRule::next(const StepShape& form, bool is_watched) {
  if (recorded_) return *recorded_ == form && !is_watched ? StepPhase::Replay : StepPhase::Eager;
  auto known = std::find_if(seen_.begin(), seen_.end(), [&](const auto& entry) { return entry.first == form; });
  if (known == seen_.end()) known = seen_.insert(seen_.end(), {form, 0});
  if (known->second < warm_ups_) {
    ++known->second;
    return StepPhase::WarmUp;
  }
  if (is_watched) return StepPhase::Eager;
  recorded_ = form;
  return StepPhase::Record;
}

}  // namespace welkin::train
