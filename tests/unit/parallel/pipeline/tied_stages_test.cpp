// SPDX-License-Identifier: Apache-2.0
// Who holds a parameter that several stages work with.
#include "parallel/pipeline/tied_stages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace welkin::parallel {
namespace {

model::Segment segment(std::vector<std::string> layers) {
  return {.name = layers.front(), .layers = std::move(layers), .run = {}};
}

ParamRow row(const std::string& name, std::vector<std::string> other_names = {}) {
  ParamRow made;
  made.name = name;
  made.other_names = std::move(other_names);
  return made;
}

const std::vector<model::Segment> kSegments{segment({"blocks.0", "embed"}), segment({"blocks.1"}), segment({"blocks.2", "embed"}),
                                            segment({"blocks.3", "head"})};
const std::vector<StageRange> kOneEach{{0, 1}, {1, 2}, {2, 3}, {3, 4}};

TEST(TiedStages, AreHeldUnderAnyName) {
  EXPECT_TRUE(row("embed.weight").is_held_by(kSegments[0]));
  EXPECT_FALSE(row("embed.weight").is_held_by(kSegments[3]));
  EXPECT_TRUE(row("embed.weight", {"head.weight"}).is_held_by(kSegments[3]));
}

TEST(TiedStages, AreThoseOfSeveralRanks) {
  EXPECT_EQ(holders_of(kSegments, kOneEach, 4, row("blocks.1.weight")), (std::vector<int64_t>{1}));
  EXPECT_EQ(holders_of(kSegments, kOneEach, 4, row("embed.weight")), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(holders_of(kSegments, kOneEach, 4, row("embed.weight", {"head.weight"})), (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(holders_of(kSegments, {{0, 2}, {2, 4}}, 2, row("embed.weight")), (std::vector<int64_t>{0, 1}));
}

// Stages 0 and 2 are on the same rank.
TEST(TiedStages, AreNoneWhereOneRankHasAll) {
  EXPECT_EQ(holders_of(kSegments, kOneEach, 2, row("embed.weight")), (std::vector<int64_t>{0}));
  EXPECT_EQ(holders_of(kSegments, kOneEach, 2, row("embed.weight", {"head.weight"})), (std::vector<int64_t>{0, 1}));
}

}  // namespace
}  // namespace welkin::parallel
