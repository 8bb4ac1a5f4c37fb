// SPDX-License-Identifier: Apache-2.0
// The exchange of context parallelism that costs least, against the arithmetic done by hand.
#include "parallel/tokens/context_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace welkin::parallel {
namespace {

using testing::HasSubstr;

// 1000 elements: 2 samples x 10 tokens x 5 heads x 10 features.
constexpr ContextWork kSmall{.batch = 2, .tokens = 10, .heads = 5, .head_dim = 10, .value_bytes = 2, .ranks = 5};

TEST(ContextChoice, CountsBytesAndMessages) {
  const ContextRates links{.flops_per_second = 1e30, .bytes_per_second = 100, .latency_s = 0};
  // Gather: 2 x 1000 values of 2 bytes, and as many sums of 4 bytes, four fifths of which come from others.
  EXPECT_DOUBLE_EQ(exposed_seconds(ContextMode::AllGather, kSmall, links).value(), 96.0);
  // Eight exchanges of 200 values of 2 bytes.
  EXPECT_DOUBLE_EQ(exposed_seconds(ContextMode::AllToAll, kSmall, links).value(), 25.6);
  // 400 values a turn: four turns forward, four backward, five of sums.
  EXPECT_DOUBLE_EQ(exposed_seconds(ContextMode::Ring, kSmall, links).value(), 8 * 8.0 + 5 * 16.0);
  const ContextRates far{.flops_per_second = 1e30, .bytes_per_second = 1e30, .latency_s = 1};
  EXPECT_DOUBLE_EQ(exposed_seconds(ContextMode::AllGather, kSmall, far).value(), 8.0);
  EXPECT_DOUBLE_EQ(exposed_seconds(ContextMode::AllToAll, kSmall, far).value(), 16.0);
  EXPECT_DOUBLE_EQ(exposed_seconds(ContextMode::Ring, kSmall, far).value(), 13.0);
}

TEST(ContextChoice, ARingWaitsOnlyForWhatItsMatmulsDoNotHide) {
  const ContextRates slow_matmuls{.flops_per_second = 1, .bytes_per_second = 100, .latency_s = 0};
  EXPECT_DOUBLE_EQ(exposed_seconds(ContextMode::Ring, kSmall, slow_matmuls).value(), 16.0);
}

TEST(ContextChoice, HeadsThatDoNotDivideExcludeTheExchange) {
  ContextWork work = kSmall;
  const ContextRates links{.flops_per_second = 1e30, .bytes_per_second = 100, .latency_s = 0};
  EXPECT_EQ(choose_context_mode(work, links).mode, ContextMode::AllToAll);
  work.heads = 4;
  work.head_dim = 12;
  const ContextChoice choice = choose_context_mode(work, links);
  EXPECT_EQ(choice.mode, ContextMode::AllGather);
  EXPECT_THAT(choice.text(), HasSubstr("all_to_all impossible: heads do not divide"));
}

TEST(ContextChoice, LongSequencesGoRoundWhereHeadsDoNotDivide) {
  const ContextWork work{.batch = 1, .tokens = 64800, .heads = 6, .head_dim = 64, .value_bytes = 2, .ranks = 4};
  EXPECT_EQ(choose_context_mode(work, typical_rates(/*is_gpu=*/true, 2)).mode, ContextMode::Ring);
}

TEST(ContextChoice, OfATransformerAsConfigured) {
  config::RunConfig config;
  config.model.embed_dim = 384;
  config.model.num_heads = 8;
  config.model.patch_size = 8;
  config.loop.global_batch_size = 4;
  config.parallel.context_mode = config::ContextMode::Auto;
  const model::ModelShape shape{.in_channels = 20, .out_channels = 20, .grid = {360, 720}};
  const Mesh mesh("tp-cp-dp", {.dp_replicate = 1, .tp = 2, .cp = 4});
  std::string note;
  EXPECT_EQ(context_mode_of(config, shape, mesh, /*is_gpu=*/true, &note), ContextMode::AllToAll);
  EXPECT_THAT(note, HasSubstr("context_mode auto: all_to_all (estimated waiting of a block: all_gather "));
  config.parallel.context_mode = config::ContextMode::Ring;
  note.clear();
  EXPECT_EQ(context_mode_of(config, shape, mesh, /*is_gpu=*/true, &note), ContextMode::Ring);
  EXPECT_EQ(note, "");
}

}  // namespace
}  // namespace welkin::parallel
