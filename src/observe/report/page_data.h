// SPDX-License-Identifier: Apache-2.0
// What the page shows, as one JSON text that its script reads. Internal to the report.
#pragma once

#include <string>
#include <vector>

#include "observe/report/run_history.h"
#include "observe/report/run_report.h"

namespace welkin::observe {

// Without <, > and &: it can stand inside of a script element as it is, whatever the runs' files hold.
std::string page_data(const RunComparison& comparison, const std::vector<RunHistory>& runs, const PageOptions& options);

// Keys whose values differ between runs that say theirs, in order.
std::vector<std::string> differing_keys(const std::vector<RunHistory>& runs);

}  // namespace welkin::observe
