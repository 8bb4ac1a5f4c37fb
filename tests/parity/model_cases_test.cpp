// SPDX-License-Identifier: Apache-2.0
// Every reference case of a model: forward, activations, loss, every gradient, the losses along ten Adam steps, the final
// weights.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/text.h"
#include "goldens.h"
#include "train/reference/model_runner.h"

namespace welkin::parity {
namespace {

namespace reference = train::reference;

std::vector<std::filesystem::path> model_cases() {
  std::vector<std::filesystem::path> cases;
  for (const auto& folder : golden_cases()) {
    const std::string kind = reference::case_kind(folder);
    if (kind == "model" || kind == "parallel") cases.push_back(folder);
  }
  return cases;
}

std::string failure_text(const reference::ComparisonRow& row) {
  return cat(row.tensor, ": max/max ", row.max_over_max, " (bound ", row.tolerance_max_over_max, "), rel l2 ", row.rel_l2,
             " (bound ", row.tolerance_rel_l2, "), max abs ", row.max_abs, " ", row.reason);
}

class ModelCaseTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ModelCaseTest, EveryStoredTensorAgrees) {
  const reference::ModelReport report = reference::run_model_case(reference::load_model_case(GetParam()));
  for (const reference::ComparisonRow& row : report.rows) {
    EXPECT_NE(row.verdict, reference::Verdict::Fail) << failure_text(row);
  }
  EXPECT_TRUE(report.passed());
  RecordProperty("compared", static_cast<int>(report.count(reference::Verdict::Pass)));
  RecordProperty("skipped", static_cast<int>(report.count(reference::Verdict::Skipped)));
  RecordProperty("seconds", cat(report.seconds));
}

INSTANTIATE_TEST_SUITE_P(Goldens, ModelCaseTest, testing::ValuesIn(model_cases()),
                         [](const auto& instance) { return instance.param.filename().string(); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ModelCaseTest);

TEST(ModelCases, Present) {
  if (model_cases().empty()) GTEST_SKIP() << "no reference cases at " << goldens_folder() << ": set WELKIN_GOLDENS";
  EXPECT_GE(model_cases().size(), 20U);
}

}  // namespace
}  // namespace welkin::parity
