// SPDX-License-Identifier: Apache-2.0
// Runs reference cases of every kind. A case that cannot be read is a report with an error, so that the other cases still run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "verify/cases/case_folder.h"
#include "verify/cases/comparison.h"
#include "verify/cases/verify_options.h"

namespace welkin::verify {

struct CaseReport {
  std::string name{}, kind{}, folder{};
  std::vector<ComparisonRow> rows{};
  std::string error{};  // the error that ended the case early
  double seconds = 0;

  int64_t count(Verdict verdict) const;
  // True if something was compared, and nothing failed.
  bool passed() const { return error.empty() && count(Verdict::Fail) == 0 && count(Verdict::Pass) > 0; }
  // The first failed row, in the order of the computation; null when all is well.
  const ComparisonRow* first_deviation() const;
};

// A bad case never makes it throw.
CaseReport verify_case(const std::filesystem::path& folder, const VerifyOptions& options);

// The kinds that verify_case knows.
std::vector<std::string> case_kinds();

}  // namespace welkin::verify
