// SPDX-License-Identifier: Apache-2.0
#include "train/monitor/early_stop.h"

#include <cmath>
#include <utility>

#include "core/text.h"

namespace welkin::train {

EarlyStop::EarlyStop(const config::EarlyStopping& rule, std::string metric, StoppingCount& state) : rule_(rule), state_(state) {
  if (state_.metric != metric) state_ = {.metric = std::move(metric), .best = {}};
}

void EarlyStop::add(double value, int64_t step) {
  const bool is_better = std::isfinite(value) && (!state_.best || value < *state_.best - rule_.min_delta);
  if (is_better) {
    state_.best = value;
    state_.best_step = step;
    state_.waited = 0;
  } else {
    ++state_.waited;
  }
}

std::string EarlyStop::reason() const {
  const std::string by = rule_.min_delta > 0 ? cat(" by more than ", rule_.min_delta) : "";
  const std::string best = state_.best ? cat("best ", *state_.best, " at step ", state_.best_step) : "it was never finite";
  return cat(state_.metric, " has not improved", by, " in ", state_.waited,
             state_.waited == 1 ? " validation: " : " validations: ", best);
}

}  // namespace welkin::train
