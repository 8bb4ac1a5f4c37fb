// SPDX-License-Identifier: Apache-2.0
#include "plan/state_bytes.h"

namespace welkin::plan {

double zero_bytes_per_parameter(int64_t stage, int64_t ranks) {
  const StateRule& rule = kStateRules[1];
  const auto shared = [&](int64_t from_stage, double bytes) {
    return stage >= from_stage ? bytes / static_cast<double>(ranks) : bytes;
  };
  return shared(3, rule.weights) + shared(2, rule.gradients) + shared(1, rule.optimizer);
}

double zero_traffic_per_parameter(int64_t stage) { return stage >= 3 ? 3 : 2; }

}  // namespace welkin::plan
