// SPDX-License-Identifier: Apache-2.0
// The reference cases of kind "parallel", each on the real processes that it names, against the correct (serial) numbers: output,
// activations, loss, every gradient, ten steps of Adam and the final weights.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/text.h"
#include "goldens.h"
#include "rank_processes.h"
#include "verify/cases/case_folder.h"
#include "verify/engine/many_process_engine.h"
#include "verify/verify.h"

namespace welkin::verify {
namespace {

const parallel::RankTest kParallelCase("parallel_case", [](parallel::Connection& connection) {
  const CaseRanks ranks{connection.rank(), connection.world_size(), [&](const std::string& name, parallel::GroupMembers members) {
                          return connection.make_group(name, std::move(members));
                        }};
  VerifyOptions options;
  options.ranks = &ranks;
  const CaseReport report = verify_case(std::getenv("WELKIN_PARALLEL_CASE"), options);
  EXPECT_EQ(report.error, "");
  for (const ComparisonRow& row : report.rows) {
    EXPECT_NE(row.verdict, Verdict::Fail) << cat(row.tensor, ": max/max ", row.max_over_max, " (bound ",
                                                 row.tolerance_max_over_max, "), rel l2 ", row.rel_l2, " (bound ",
                                                 row.tolerance_rel_l2, ") ", row.reason);
  }
  EXPECT_GT(report.count(Verdict::Pass), 60);
});

TEST(ParallelCases, EqualTheSerialNumbersOnTheirRanks) {
  int64_t count = 0;
  for (const auto& path : parity::golden_cases()) {
    const CaseFolder folder(path);
    if (folder.kind() != "parallel") continue;
    SCOPED_TRACE(folder.name());
    setenv("WELKIN_PARALLEL_CASE", path.c_str(), 1);
    parallel::run_on_ranks("parallel_case", ranks_of_case(folder));
    ++count;
  }
  if (count == 0) GTEST_SKIP() << "no reference cases at " << parity::goldens_folder() << ": set WELKIN_GOLDENS";
  EXPECT_EQ(count, 5);
}

}  // namespace
}  // namespace welkin::verify
