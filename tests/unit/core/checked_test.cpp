// SPDX-License-Identifier: Apache-2.0
#include "core/checked.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace welkin {
namespace {

struct DoesNotFit {};
const auto kRefuse = [] { throw DoesNotFit{}; };
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

TEST(Checked, PassesWhatFits) {
  EXPECT_EQ(checked_add<int64_t>(kLargest - 1, 1, kRefuse), kLargest);
  EXPECT_EQ(checked_mul<uint64_t>(1ull << 32, (1ull << 32) - 1, kRefuse), 0xffffffff00000000ull);
  EXPECT_EQ((checked_cast<uint8_t>(255, kRefuse)), 255);
}

TEST(Checked, RefusesWhatWraps) {
  EXPECT_THROW(checked_add<int64_t>(kLargest, 1, kRefuse), DoesNotFit);
  EXPECT_THROW(checked_mul<uint64_t>(1ull << 32, 1ull << 32, kRefuse), DoesNotFit);
  EXPECT_THROW((checked_cast<uint64_t>(-1, kRefuse)), DoesNotFit);
}

TEST(Checked, AHandlerThatReturnsIsABug) {
  EXPECT_THROW(checked_add<int64_t>(kLargest, 1, [] {}), InternalError);
}

TEST(Checked, ProductOfAShape) {
  EXPECT_EQ(checked_product(std::vector<int64_t>{}, kRefuse), 1);
  EXPECT_EQ(checked_product(std::vector<int64_t>{2, 3, 4}, kRefuse), 24);
  EXPECT_EQ(checked_product(std::vector<int64_t>{2, 0, 4}, kRefuse), 0);
  EXPECT_THROW(checked_product(std::vector<int64_t>{2, -1}, kRefuse), DoesNotFit);
  EXPECT_THROW(checked_product(std::vector<int64_t>{kLargest, 0, 2}, kRefuse), DoesNotFit);
}

}  // namespace
}  // namespace welkin
