// SPDX-License-Identifier: Apache-2.0
// How a forecast is cut into units that one rank makes at once. Pure arithmetic.
#pragma once

#include <cstdint>
#include <vector>

namespace welkin::train {

struct ForecastUnit {
  int64_t start = 0;             // which of the starts
  int64_t model = 0;             // which of the checkpoints
  std::vector<int64_t> members;  // ascending, at most as many as a batch holds
};

// Member m is made by model m mod `num_models`. Does not depend on ranks.
std::vector<ForecastUnit> forecast_units(int64_t num_starts, int64_t num_members, int64_t num_models, int64_t batch);

}  // namespace welkin::train
