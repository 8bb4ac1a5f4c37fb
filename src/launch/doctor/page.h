// SPDX-License-Identifier: Apache-2.0
// The doctor's page: findings as text for a terminal and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "launch/doctor/finding.h"

namespace welkin::launch {

// One line for each finding: green, amber or red, what was found, and below it the remedy. Colours where `in_colour`.
std::string page_text(const Findings& findings, bool in_colour);

// {"verdict": "amber", "findings": [{"topic", "verdict", "found", "remedy"}, ...]}
std::string page_json(const Findings& findings);

// The findings in the text of such a page; none where it is no page.
Findings findings_of(std::string_view json);

Verdict worst(const Findings& findings);

}  // namespace welkin::launch
