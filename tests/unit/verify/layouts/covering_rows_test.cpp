// SPDX-License-Identifier: Apache-2.0
// The oracle lists the combinations of every set of columns without any numbering.
#include "verify/layouts/covering_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace welkin::verify::tests {
namespace {

using Rows = std::vector<std::vector<int>>;

// Of `extents` values each, without rows in which the first two columns are both 1: options that exclude each other.
Rows product(const std::vector<int>& extents) {
  Rows rows{{}};
  for (const int extent : extents) {
    Rows longer;
    for (const std::vector<int>& row : rows) {
      for (int value = 0; value < extent; ++value) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    }
    rows = std::move(longer);
  }
  std::erase_if(rows, [](const std::vector<int>& row) { return row[0] == 1 && row[1] == 1; });
  return rows;
}

// (columns as bits, values) of all sets of `strength` columns.
std::set<std::pair<unsigned, std::vector<int>>> combinations(const Rows& rows, const std::vector<size_t>& chosen, int strength) {
  std::set<std::pair<unsigned, std::vector<int>>> found;
  for (const size_t row : chosen) {
    for (unsigned columns = 0; columns < 1U << rows[row].size(); ++columns) {
      if (std::popcount(columns) != strength) continue;
      std::vector<int> values;
      for (size_t c = 0; c < rows[row].size(); ++c) {
        if ((columns >> c & 1U) != 0) values.push_back(rows[row][c]);
      }
      found.emplace(columns, std::move(values));
    }
  }
  return found;
}

std::vector<size_t> all_of(const Rows& rows) {
  std::vector<size_t> all;
  for (size_t row = 0; row < rows.size(); ++row) all.push_back(row);
  return all;
}

class CoveringRows : public testing::TestWithParam<int> {};

TEST_P(CoveringRows, HaveEveryCombinationOfTheTable) {
  const int strength = GetParam();
  const Rows rows = product({2, 3, 2, 4, 2});
  const std::vector<size_t> chosen = covering_rows(rows, static_cast<size_t>(strength));
  EXPECT_EQ(combinations(rows, chosen, strength), combinations(rows, all_of(rows), strength));
  // Each row adds something, so no row comes twice.
  for (size_t count = 1; count <= chosen.size(); ++count) {
    const std::vector<size_t> before(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(count - 1));
    const std::vector<size_t> with(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(count));
    EXPECT_GT(combinations(rows, with, strength).size(), combinations(rows, before, strength).size()) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Strengths, CoveringRows, testing::Values(1, 2, 3, 4));

// The pairs of 3 columns of 3 values need 9 rows, and greedy finds them; all of them are 27.
TEST(CoveringRowsGreedy, TakesFewRows) {
  Rows rows = product({1, 3, 3, 3});
  EXPECT_EQ(covering_rows(rows, 2).size(), 9);
}

TEST(CoveringRowsGreedy, KeepsTheChosenRowsAndDoesNotCoverThemAgain) {
  const Rows rows = product({2, 2, 2});
  const std::vector<size_t> chosen = covering_rows(rows, 2, {5, 0});
  EXPECT_THAT(std::vector<size_t>(chosen.begin(), chosen.begin() + 2), testing::ElementsAre(5, 0));
  EXPECT_EQ(combinations(rows, chosen, 2), combinations(rows, all_of(rows), 2));
  EXPECT_THAT(covering_rows(rows, 2, all_of(rows)), testing::ElementsAreArray(all_of(rows)));
}

}  // namespace
}  // namespace welkin::verify::tests
