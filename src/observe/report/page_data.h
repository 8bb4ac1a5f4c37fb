// SPDX-License-Identifier: Apache-2.0
// The page's data as one JSON text, which its script reads. Internal to the report.
#pragma once

#include <string>
#include <vector>

#include "observe/report/run_history.h"
#include "observe/report/run_report.h"

namespace welkin::observe {

// Contains no <, > or &, so that it can be put inside of a script element, whatever the runs' files hold.
std::string page_data(const RunComparison& comparison, const std::vector<RunHistory>& runs, const PageOptions& options);

// Keys whose values differ between runs with a known configuration, in order.
std::vector<std::string> differing_keys(const std::vector<RunHistory>& runs);

}  // namespace welkin::observe
