// SPDX-License-Identifier: Apache-2.0
// Reports of reference cases for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "verify/verify.h"

namespace welkin::verify {

// One line per case: verdict, counts, the row nearest to its bound, seconds; the first tensor that deviates, and the error if
// there is one. Below it one row per tensor (only failed ones with `brief`).
std::string report_text(const CaseReport& report, bool brief);

// One line for all cases.
std::string summary_text(const std::vector<CaseReport>& reports);

// {"passed", "cases": [{"name", "kind", "folder", "passed", "error", "first_deviation", "first_layer", "seconds", "rows":
// [{"tensor", "part", "max_abs", "max_over_max", "rel_l2", "tolerance_max_over_max", "tolerance_rel_l2", "verdict",
// "reason"}]}]}. Bounds that do not exist and values that are not finite are null; so are error, first_deviation and first_layer
// (the module that it belongs to) when there is none.
std::string report_json(const std::vector<CaseReport>& reports);

}  // namespace welkin::verify
