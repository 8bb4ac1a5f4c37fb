// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/forecast_units.h"

namespace welkin::train {

std::vector<ForecastUnit> forecast_units(int64_t num_starts, int64_t num_members, int64_t num_models, int64_t batch) {
  std::vector<ForecastUnit> units;
  for (int64_t start = 0; start < num_starts; ++start) {
    for (int64_t model = 0; model < num_models; ++model) {
      std::vector<int64_t> members;
      for (int64_t member = model; member < num_members; member += num_models) {
        members.push_back(member);
        const bool is_last = member + num_models >= num_members;
        if (!is_last && static_cast<int64_t>(members.size()) < batch) continue;
        units.push_back({.start = start, .model = model, .members = std::move(members)});
        members = {};
      }
    }
  }
  return units;
}

}  // namespace welkin::train
