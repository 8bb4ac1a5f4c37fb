// SPDX-License-Identifier: Apache-2.0
// What `welkin bench` makes of what it measured: rates, bottlenecks, roofs, advice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "train/bench/advice.h"
#include "train/bench/layers.h"
#include "train/bench/peaks.h"
#include "train/bench/phases.h"
#include "train/bench/rates.h"
#include "train/bench/step_report.h"
#include "train/bench/trials.h"

namespace welkin::train::bench {
namespace {

using testing::HasSubstr;

TEST(BenchRates, SpreadIsTheRangeOverTheMedian) {
  const Rates rates{.windows = {10, 8, 12}, .batches = 3};
  EXPECT_DOUBLE_EQ(rates.median(), 10);
  EXPECT_DOUBLE_EQ(rates.spread(), 0.4);
}

TEST(BenchRates, RanksThatAgreeDoEquallyManyBatches) {
  int64_t batches = 0, settled = 0, warmed_up_at = -1;
  std::vector<int64_t> wishes;
  const Rates rates = measure_rates({.warmup_batches = 2, .warmup_seconds = 0, .windows = 3, .window_seconds = 0},
                                    {.batch =
                                         [&] {
                                           ++batches;
                                           return int64_t{4};
                                         },
                                     .settle = [&] { ++settled; },
                                     .warmed_up = [&] { warmed_up_at = batches; },
                                     .agree =
                                         [&](int64_t wanted) {
                                           wishes.push_back(wanted);
                                           return std::max<int64_t>(wanted, wishes.size() == 1 ? 0 : 5);
                                         }});
  EXPECT_THAT(wishes, testing::ElementsAre(0, 1));  // what remains of the warm-up, and a window
  EXPECT_EQ(warmed_up_at, 3);
  EXPECT_EQ(batches, 3 + 3 * 5);
  EXPECT_EQ(rates.batches, 15);
  EXPECT_EQ(rates.windows.size(), 3U);
  EXPECT_GE(settled, 5);
}

TEST(BenchPhases, OnlyTheStepsOwnSpansCount) {
  PhaseClock clock;
  observe::Tracer tracer;
  tracer.add_sink(clock);
  for (int i = 0; i < 2; ++i) {
    const observe::Span other(&tracer, "all_reduce");
    const observe::Span span(&tracer, "backward");
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
  const std::vector<Phase> phases = clock.per_step(2);
  EXPECT_EQ(longest_phase(phases), "backward");
  double sum = 0;
  for (const Phase& phase : phases) sum += phase.seconds;
  EXPECT_DOUBLE_EQ(sum, phases.at(3).seconds);
  EXPECT_GE(sum, 4e-3);
  clock.clear();
  EXPECT_EQ(longest_phase(clock.per_step(2)), "");
}

std::vector<Phase> mostly(std::string_view name) { return {{"forward", 1e-3}, {name, 5e-3}}; }

TEST(BenchBottleneck, IsNamedWithItsReason) {
  const auto backward = mostly("backward");
  EXPECT_THAT(bottleneck({.io = 50, .synthetic = 100, .full = 50, .nocomm = {}}, backward),
              HasSubstr("reading: it delivers less"));
  EXPECT_EQ(bottleneck({.io = 500, .synthetic = 100, .full = 99, .nocomm = {}}, backward), "the step: most of it is backward");
  EXPECT_THAT(bottleneck({.io = 100, .synthetic = 100, .full = 50, .nocomm = {}}, backward),
              HasSubstr("share the cores: together they reach 50 %"));
  EXPECT_EQ(bottleneck({.io = 500, .synthetic = 75, .full = 74, .nocomm = 100}, backward),
            "communication: without it a step takes 25 % less");
  EXPECT_THAT(bottleneck({.io = {}, .synthetic = {}, .full = 10, .nocomm = {}}, mostly("fetch")),
              HasSubstr("waits for its samples"));
  EXPECT_THAT(bottleneck({.io = 5, .synthetic = {}, .full = {}, .nocomm = {}}, {}), HasSubstr("nothing else was measured"));
}

TEST(BenchPeaks, TheoryIsCoresTimesClockTimesWidth) {
  EXPECT_DOUBLE_EQ(theoretical_flops(2, 3e9, 16), 2 * 3e9 * 64);
  EXPECT_DOUBLE_EQ(clock_hertz("processor : 0\ncpu MHz\t\t: 2100.5\nx\ncpu MHz\t\t: 2600.000\n"), 2.6e9);
  EXPECT_DOUBLE_EQ(clock_hertz("BogoMIPS : 48.00\n"), 0);
}

TEST(BenchPeaks, AreMeasured) {
  const Peaks peaks = measure_peaks(c10::kCPU, 0.01);
  EXPECT_GT(peaks.fp32_flops, 1e8);
  EXPECT_GT(peaks.bf16_flops, 1e6);
  EXPECT_GT(peaks.bytes, 1e7);
  EXPECT_DOUBLE_EQ(peaks.measured(config::AmpMode::Bf16), peaks.bf16_flops);
}

TEST(BenchLayers, RowsJoinRepeatedBlocksAndMeetTheRoof) {
  model::ModelCost cost;
  cost.add({.name = "head", .forward_flops = 10, .train_flops = 30, .activation_bytes = 8, .parameters = 1});
  for (int i = 0; i < 2; ++i) {
    cost.add({.name = "blocks." + std::to_string(i) + ".q", .forward_flops = 100, .train_flops = 300, .activation_bytes = 4});
  }
  const auto rows = layer_rows(cost, {{1, 2}, {0.1, 0.2}, {0.1, 0.2}}, /*batch=*/2, /*element_bytes=*/4);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].name, "blocks.*.q");
  EXPECT_EQ(rows[1].count, 2);
  EXPECT_DOUBLE_EQ(rows[0].flops, 60);
  EXPECT_DOUBLE_EQ(rows[0].bytes, 3 * (2 * 8 + 4));
  EXPECT_DOUBLE_EQ(rows[1].flops_per_second(), 1200 / 0.6);
  EXPECT_DOUBLE_EQ(attainable_flops(rows[0].intensity(), 1e3, 50), 50);
  EXPECT_DOUBLE_EQ(attainable_flops(rows[1].intensity(), 1e3, 50), 1e3);
  const std::string text = layers_text(rows, 1e3, {.fp32_flops = 1e3, .bf16_flops = 1e3, .bytes = 50});
  EXPECT_THAT(text, HasSubstr("blocks.*.q (2)"));
  EXPECT_THAT(text, HasSubstr("memory"));
  EXPECT_THAT(text, HasSubstr("all layers"));
}

TEST(BenchAdvice, TilesThatAreNotFilled) {
  EXPECT_DOUBLE_EQ(tile_share(64, 64), 1);
  EXPECT_DOUBLE_EQ(tile_share(65, 64), 65.0 / 128);
  EXPECT_DOUBLE_EQ(tile_share(0, 64), 0);
}

config::RunConfig vit_config() {
  config::RunConfig config;
  config.model.model = "vit";
  config.model.embed_dim = 100;
  config.model.num_heads = 5;
  config.model.img_size = {16, 32};
  config.model.patch_size = 4;
  config.model.mlp_ratio = 4;
  config.model.n_in_channels = 4;
  return config;
}

TEST(BenchAdvice, SpeaksOfWidthsRowsPrecisionAndThreads) {
  const auto lines =
      advice(vit_config(), {.is_gpu = false, .batch = 3, .threads = 1, .cores = 2, .fp32_flops = 1e9, .bf16_flops = 2e9});
  EXPECT_THAT(lines, testing::Contains(HasSubstr("3 samples, so products have 96 rows: tiles of 64 are filled to 75 %")));
  EXPECT_THAT(lines,
              testing::Contains(HasSubstr("embed_dim=100 is no multiple of 8: vectors are filled to 96 %; 104 costs the same")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("patch inputs=64 is a multiple of 64")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("2.00 times as fast as fp32 here: --amp_mode bf16 is worth trying")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("threads in use: 1 of 2 cores")));
}

TEST(BenchTrials, RatiosAreToTheFirstRowThatHasAFigure) {
  const std::vector<TrialRow> rows{{.name = "skipped", .note = "no effect: here", .rates = {}},
                                   {.name = "one", .note = "", .rates = Rates{{10}, 1}, .peak_bytes = 1 << 20},
                                   {.name = "two", .note = "", .rates = Rates{{25}, 1}}};
  const std::string text = trials_text("ladder", rows);
  EXPECT_THAT(text, HasSubstr("no effect: here"));
  EXPECT_THAT(text, HasSubstr("2.50"));
  EXPECT_THAT(text, HasSubstr("1.0 MiB"));
  const auto json = trials_json(rows);
  EXPECT_FALSE(json[0].contains("ratio"));
  EXPECT_DOUBLE_EQ(json[2]["ratio"], 2.5);
  EXPECT_THAT(trials_svg("ladder", rows), HasSubstr(">two</text>"));
}

}  // namespace
}  // namespace welkin::train::bench
