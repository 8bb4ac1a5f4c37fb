// SPDX-License-Identifier: Apache-2.0
// Every reference case that the folder of goldens holds, whatever its kind, through the runner of `welkin verify`.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/text.h"
#include "goldens.h"
#include "verify/verify.h"

namespace welkin::parity {
namespace {

std::string failure_text(const verify::ComparisonRow& row) {
  return cat(row.tensor, " (", row.part, "): max/max ", row.max_over_max, " (bound ", row.tolerance_max_over_max, "), rel l2 ",
             row.rel_l2, " (bound ", row.tolerance_rel_l2, "), max abs ", row.max_abs, " ", row.reason);
}

class CaseTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(CaseTest, EveryTensorAgrees) {
  const verify::CaseReport report = verify::verify_case(GetParam(), {});
  EXPECT_EQ(report.error, "");
  for (const verify::ComparisonRow& row : report.rows) {
    EXPECT_NE(row.verdict, verify::Verdict::Fail) << failure_text(row);
  }
  EXPECT_TRUE(report.passed());
  RecordProperty("compared", static_cast<int>(report.count(verify::Verdict::Pass)));
  RecordProperty("skipped", static_cast<int>(report.count(verify::Verdict::Skipped)));
  RecordProperty("seconds", cat(report.seconds));
}

std::string case_name(const testing::TestParamInfo<std::filesystem::path>& instance) {
  std::string name = instance.param.filename().string();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Goldens, CaseTest, testing::ValuesIn(golden_cases()), case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CaseTest);

// The default folder holds every kind; a folder that WELKIN_GOLDENS names may hold any.
TEST(Cases, OfEveryKindArePresent) {
  if (golden_cases().empty()) GTEST_SKIP() << "no reference cases at " << goldens_folder() << ": set WELKIN_GOLDENS";
  std::set<std::string> kinds;
  for (const auto& folder : golden_cases()) kinds.insert(verify::CaseFolder(folder).kind());
  if (std::getenv("WELKIN_GOLDENS") != nullptr) {
    EXPECT_FALSE(kinds.empty());
    return;
  }
  kinds.insert("optimizer");  // optimizer_cases_test.py writes and checks them
  for (const std::string& kind : verify::case_kinds()) EXPECT_TRUE(kinds.contains(kind)) << kind;
}

}  // namespace
}  // namespace welkin::parity
