// SPDX-License-Identifier: Apache-2.0
// Segments of a model cut into stages.
#include "parallel/pipeline/stage_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace welkin::parallel {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename Function>
std::string refusal(const Function& function) {
  try {
    function();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST(StageCut, EqualSegmentsMakeEqualStages) {
  EXPECT_EQ(text_of(balanced_stages(std::vector<double>(8, 1), 2)), "0-3,4-7");
  EXPECT_EQ(text_of(balanced_stages(std::vector<double>(4, 1), 4)), "0,1,2,3");
}

TEST(StageCut, TheMostExpensiveStageIsAsCheapAsCanBe) {
  EXPECT_EQ(text_of(balanced_stages({5, 1, 1, 1, 1, 1}, 2)), "0,1-5");
  EXPECT_EQ(text_of(balanced_stages({1, 1, 1, 6, 1, 1, 1}, 3)), "0-2,3,4-6");
}

TEST(StageCut, TakesWhatTheUserSays) {
  EXPECT_THAT(stages_of_text("0-4,5,6-7", 8, 3), ElementsAre(StageRange{0, 5}, StageRange{5, 6}, StageRange{6, 8}));
}

TEST(StageCut, SaysWhatIsWrong) {
  EXPECT_THAT(refusal([] {
                balanced_stages({1, 1, 1}, 4);
              }),
              AllOf(HasSubstr("the pipeline has more stages than the model has blocks: stages=4, blocks=3"),
                    HasSubstr("pipeline_parallel times pipeline_chunks may be 3 at most")));
  const auto text = [](const char* split) { return refusal([split] { stages_of_text(split, 8, 2); }); };
  EXPECT_THAT(text("0-3,5-7"), AllOf(HasSubstr("pipeline_split=0-3,5-7, block 4 should begin 5-7"),
                                     HasSubstr("Name the first and the last of blocks 0 to 7 for each of 2 stages, as 0-3,4-7")));
  EXPECT_THAT(text("0-3,4-6"), HasSubstr("blocks=8, named=7"));
  EXPECT_THAT(text("0-3,4-5,6-7"), HasSubstr("stages=2, named=3"));
  for (const char* wrong : {"0-3,", "a-b", "3-0,4-7", "0-3;4-7", "-1-3,4-7"})
    EXPECT_THAT(text(wrong), HasSubstr("no such part: "));
}

TEST(StageCut, InputReadersAreTheRanksOfStagesThatLookAtIt) {
  const auto segment = [](bool reads) { return model::Segment{.name = "a", .layers = {}, .run = {}, .reads_input = reads}; };
  const std::vector<model::Segment> segments{segment(true), segment(false), segment(false), segment(true), segment(false)};
  EXPECT_THAT(input_readers(segments, {{0, 1}, {1, 3}, {3, 5}}, 3), ElementsAre(0, 2));
  EXPECT_THAT(input_readers(segments, {{0, 1}, {1, 2}, {2, 3}, {3, 5}}, 2), ElementsAre(0, 1)) << "two stages a rank";
  EXPECT_THAT(input_readers({segment(true), segment(false)}, {{0, 1}, {1, 2}}, 2), ElementsAre(0));
}

TEST(StageCut, CostsAreThoseOfTheLayersThatASegmentHolds) {
  const std::vector<model::Segment> segments{{.name = "a", .layers = {"blocks.1", "embed"}, .run = {}},
                                             {.name = "b", .layers = {"blocks.10"}, .run = {}}};
  model::ModelCost cost;
  cost.add({.name = "embed", .train_flops = 1});
  cost.add({.name = "blocks.1.attn.q", .train_flops = 2});
  cost.add({.name = "blocks.10.attn.q", .train_flops = 4});
  EXPECT_THAT(segment_costs(segments, cost), ElementsAre(3, 4));
  EXPECT_THAT(segment_costs(segments, {}), ElementsAre(1, 1));
}

}  // namespace
}  // namespace welkin::parallel
