// SPDX-License-Identifier: Apache-2.0
#include "core/fault/failure_model.h"

#include <algorithm>
#include <cmath>

namespace welkin {
namespace {

// The interval of greatest goodput: with x = interval / mtbf the derivative is zero where (1 - x) exp(x) = exp(-held / mtbf).
double stationary_interval_s(const FailureCosts& costs) {
  const double wanted = std::exp(-costs.held_s / costs.mtbf_s);
  double low = 0, high = 1;  // the left side falls from 1 to 0
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double x = (low + high) / 2;
    ((1 - x) * std::exp(x) > wanted ? low : high) = x;
  }
  return high * costs.mtbf_s;
}

}  // namespace

double young_interval_s(const FailureCosts& costs) { return std::sqrt(2 * costs.held_s * costs.mtbf_s); }

double daly_interval_s(const FailureCosts& costs) {
  if (costs.held_s >= 2 * costs.mtbf_s) return costs.mtbf_s;
  const double ratio = costs.held_s / (2 * costs.mtbf_s);
  return young_interval_s(costs) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - costs.held_s;
}

double best_interval_s(const FailureCosts& costs) {
  return std::max(stationary_interval_s(costs), costs.written_s - costs.held_s);
}

double goodput(const FailureCosts& costs, double interval_s) {
  if (interval_s <= 0) return 0;
  const double unsaved_s = costs.restart_s + std::max(costs.written_s - costs.held_s, 0.0);
  const double cycle = (interval_s + costs.held_s) / costs.mtbf_s;
  return interval_s / costs.mtbf_s * std::exp(-unsaved_s / costs.mtbf_s) / std::expm1(cycle);
}

}  // namespace welkin
