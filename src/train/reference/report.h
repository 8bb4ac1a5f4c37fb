// SPDX-License-Identifier: Apache-2.0
// Reports of reference cases for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "train/reference/model_runner.h"

namespace welkin::train::reference {

// One line per case: verdict, counts, the row nearest to its bound, seconds; and under it every failed row (every row with
// `all`).
std::string report_text(const std::vector<ModelReport>& reports, bool all);

// {"cases": [{"name", "passed", "seconds", "rows": [{"tensor", "max_abs", "max_over_max", "rel_l2", "tolerance_max_over_max",
// "tolerance_rel_l2", "verdict", "reason"}]}]}. Bounds that do not exist and values that are not finite are null.
std::string report_json(const std::vector<ModelReport>& reports);

}  // namespace welkin::train::reference
