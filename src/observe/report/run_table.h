// SPDX-License-Identifier: Apache-2.0
// The cells of the table of runs, shared by text and page.
#pragma once

#include <string>
#include <vector>

#include "observe/report/run_report.h"

namespace welkin::observe {

std::vector<std::string> run_columns();
std::vector<std::vector<std::string>> run_rows(const RunComparison& comparison);
std::string target_line(const RunComparison& comparison);

}  // namespace welkin::observe
