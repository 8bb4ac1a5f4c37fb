// SPDX-License-Identifier: Apache-2.0
// What `welkin bench` makes of what it measured: rates, bottlenecks, roofs, advice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "bench/step/advice.h"
#include "bench/step/choices.h"
#include "bench/step/layers.h"
#include "bench/step/peaks.h"
#include "bench/step/phases.h"
#include "bench/step/rates.h"
#include "bench/step/step_bench.h"
#include "bench/step/step_report.h"
#include "bench/step/theoretical_peak.h"
#include "bench/step/trials.h"
#include "core/error.h"
#include "number_close.h"

namespace welkin::bench {
namespace {

using testing::HasSubstr;

TEST(BenchRates, SpreadIsTheRangeOverTheMedian) {
  const Rates rates{.windows = {10, 8, 12}, .batches = 3};
  EXPECT_DOUBLE_EQ(rates.median(), 10);
  EXPECT_DOUBLE_EQ(rates.spread(), 0.4);
}

TEST(BenchRates, RanksThatAgreeDoEquallyManyBatches) {
  int64_t batches = 0, settled = 0, warmed_up_at = -1;
  std::vector<int64_t> asked;
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
                                           asked.push_back(wanted);
                                           return std::max<int64_t>(wanted, asked.size() == 1 ? 0 : 5);
                                         }});
  EXPECT_THAT(asked, testing::ElementsAre(0, 1));  // what remains of the warm-up, and a window
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
  EXPECT_DOUBLE_EQ(bf16_width("processor : 0\nflags : fpu avx2 avx512f\nbugs : x\n"), 1);
  EXPECT_DOUBLE_EQ(bf16_width("processor : 0\nflags : fpu avx512f avx512_bf16\nbugs : x\n"), 2);
  EXPECT_DOUBLE_EQ(bf16_width("processor : 0\nflags : amx_bf16 avx512_bf16\n"), 16);
  EXPECT_DOUBLE_EQ(bf16_width("Features : asimd bf16\n"), 1);
  EXPECT_DOUBLE_EQ(float32_width(16, /*parts=*/0), 1);
  EXPECT_DOUBLE_EQ(float32_width(16, /*parts=*/1), 16);
  EXPECT_DOUBLE_EQ(float32_width(15, /*parts=*/2), 5);
  EXPECT_DOUBLE_EQ(float32_width(2, /*parts=*/2), 1);
}

// The lecture's A100: 108 multiprocessors at 1.41 GHz.
TEST(BenchPeaks, TheoryOfAGpuIsItsDataSheets) {
  const GpuFacts a100{.multiprocessors = 108, .hertz = 1.41e9, .major = 8, .minor = 0};
  EXPECT_DOUBLE_EQ(theoretical_gpu_flops(a100, GpuUnits::Tf32), 108 * 512 * 2 * 1.41e9);
  const auto is_stated = [](double flops, double stated, double digit) {
    return tests::within(flops * 1e-12, stated, {digit, "a digit of the data sheet"});
  };
  EXPECT_TRUE(is_stated(theoretical_gpu_flops(a100, GpuUnits::Half), 312, 1));
  EXPECT_TRUE(is_stated(theoretical_gpu_flops(a100, GpuUnits::Vector), 19.5, 0.1));
  const GpuFacts h200{.multiprocessors = 132, .hertz = 1.83e9, .major = 9, .minor = 0};
  EXPECT_TRUE(is_stated(theoretical_gpu_flops(h200, GpuUnits::Half), 989, 1));
  const GpuFacts v100{.multiprocessors = 80, .hertz = 1.53e9, .major = 7, .minor = 0};
  EXPECT_DOUBLE_EQ(theoretical_gpu_flops(v100, GpuUnits::Tf32), theoretical_gpu_flops(v100, GpuUnits::Vector));
  EXPECT_EQ(theoretical_gpu_flops({.multiprocessors = 10, .hertz = 1e9, .major = 99, .minor = 0}, GpuUnits::Half), 0);
  EXPECT_NO_THROW(gpu_facts(0)) << "without a GPU it says nothing";
}

TEST(BenchPeaks, AreMeasured) {
  const Peaks peaks = measure_peaks(c10::kCPU, 0.01);
  EXPECT_GT(peaks.fp32_flops, 1e8);
  EXPECT_GT(peaks.bf16_flops, 1e6);
  EXPECT_GT(peaks.bytes, 1e7);
  EXPECT_GT(peaks.theoretical(config::AmpMode::Bf16), 0);
}

// fp16 runs on the units of bf16; a machine without them widens their matmuls.
TEST(BenchPeaks, NoModeHasALowerPeakThanFp32) {
  const Peaks fast{.fp32_flops = 4e11, .bf16_flops = 8e11, .theoretical_fp32_flops = 5e11, .theoretical_bf16_flops = 1e12};
  EXPECT_DOUBLE_EQ(fast.measured(config::AmpMode::None), 4e11);
  EXPECT_DOUBLE_EQ(fast.measured(config::AmpMode::Bf16), 8e11);
  EXPECT_DOUBLE_EQ(fast.measured(config::AmpMode::Fp16), 8e11);
  EXPECT_DOUBLE_EQ(fast.theoretical(config::AmpMode::Bf16), 1e12);
  const Peaks slow{.fp32_flops = 8e10, .bf16_flops = 1e9};
  EXPECT_DOUBLE_EQ(slow.measured(config::AmpMode::Bf16), 8e10);
}

TEST(BenchMemory, ActivationsAreWhatThePeakHoldsBesidesWhereTheModelIs) {
  MemoryByKind memory{.weights = 10, .gradients = 10, .optimizer = 20, .resident_before_model = 1000, .resident_peak = 1100};
  memory.find_activations();
  EXPECT_EQ(memory.activations, 60);
  memory.device_before_model = 5, memory.device_peak = 545;  // what the host holds says nothing then
  memory.find_activations();
  EXPECT_EQ(memory.peak(), 540);
  EXPECT_EQ(memory.activations, 500);
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
  const std::string text = layers_text(rows, {.fp32_flops = 1e3, .bf16_flops = 1e3, .bytes = 50}, config::AmpMode::None);
  EXPECT_THAT(text, HasSubstr("blocks.*.q (2)"));
  EXPECT_THAT(text, HasSubstr("memory"));
  EXPECT_THAT(text, HasSubstr("all layers"));
}

TEST(BenchAdvice, TilesThatAreNotFilled) {
  EXPECT_DOUBLE_EQ(tile_efficiency(64, 64), 1);
  EXPECT_DOUBLE_EQ(tile_efficiency(65, 64), 65.0 / 128);
  EXPECT_DOUBLE_EQ(tile_efficiency(0, 64), 0);
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
  EXPECT_THAT(lines, testing::Contains(HasSubstr("3 samples, so matmuls have 96 rows: tiles of 64 are filled to 75 %")));
  EXPECT_THAT(lines, testing::Contains(
                         HasSubstr("embed_dim=100 is no multiple of 8: vectors are filled to 96 %; embed_dim=120 fills them")));
  for (const std::string& line : lines) EXPECT_THAT(line, testing::Not(HasSubstr("costs the same")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("patch inputs=64 is a multiple of 64")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("2.00 times as fast as fp32 here: --amp_mode bf16 is worth trying")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("threads in use: 1 of 2 cores")));
}

TEST(BenchAdvice, SpeaksOfTheMemoryFormatThatTheRunHas) {
  config::RunConfig config;
  config.model.model = "unet3d";
  EXPECT_THAT(advice(config, {.is_gpu = false}), testing::Contains(HasSubstr("there is no other to choose")));
  EXPECT_THAT(advice(config, {.is_gpu = true}),
              testing::Contains(HasSubstr("channels first; convolutions on tensor cores want")));
  config.backend.channels_last = true;
  EXPECT_THAT(advice(config, {.is_gpu = true}), testing::Contains(HasSubstr("memory format: channels last, which")));
}

TEST(BenchAdvice, SpeaksOfTheStateThatRanksOfASampleHold) {
  config::RunConfig config;
  const auto of_ranks = testing::Contains(HasSubstr("share the points of a sample"));
  EXPECT_THAT(advice(config, {}), testing::Not(of_ranks));
  config.parallel.spatial = {.d = 2, .h = 1, .w = 2};
  EXPECT_THAT(advice(config, {}),
              testing::Contains(HasSubstr("4 ranks share the points of a sample, and each updates all weights: "
                                          "--shard optimizer is worth trying")));
  config.parallel.shard = config::ShardStage::Optimizer;
  EXPECT_THAT(advice(config, {}), testing::Contains(HasSubstr("and each updates its part of the weights")));
}

std::vector<std::string> values_of(const std::vector<Choice>& choices, const std::string& key) {
  const auto found = std::ranges::find(choices, key, &Choice::key);
  return found == choices.end() ? std::vector<std::string>{} : found->values;
}

TEST(BenchChoices, AreThoseThatTheRunDoesNotHave) {
  config::RunConfig config;
  config.loop.global_batch_size = config.loop.local_batch_size.emplace(4);
  const PresentValues present{.local_batch = 4,
                              .cores = 4,
                              .threads = 4,
                              .has_convolutions = true,
                              .gemm = "onednn",
                              .instruction_set = "avx2",
                              .instruction_sets = {"portable", "avx2"}};
  const auto cpu = switch_choices(config, config::DeviceKind::Cpu, present, /*reads=*/false);
  using testing::ElementsAre;
  EXPECT_THAT(values_of(cpu, "amp_mode"), ElementsAre("bf16"));
  EXPECT_THAT(values_of(cpu, "micro_batch_size"), ElementsAre("2", "1"));
  EXPECT_THAT(values_of(cpu, "backend.gemm"), ElementsAre("mkl")) << "auto is onednn here";
  EXPECT_THAT(values_of(cpu, "backend.instruction_set"), ElementsAre("portable"));
  EXPECT_THAT(values_of(cpu, "threads"), ElementsAre("2", "1"));
  EXPECT_THAT(values_of(cpu, "num_data_workers"), ElementsAre());
  const auto reading = switch_choices(config, config::DeviceKind::Cpu, present, /*reads=*/true);
  EXPECT_THAT(values_of(reading, "num_data_workers"), ElementsAre("4", "2", "1"));
  EXPECT_THAT(values_of(reading, "resident"), ElementsAre("host"));

  EXPECT_THAT(values_of(cpu, "backend.float32_matmul_precision"), ElementsAre()) << "nothing rounds without AMX";
  PresentValues with_tiles = present;
  with_tiles.instruction_sets.emplace_back("amx");
  EXPECT_THAT(values_of(switch_choices(config, config::DeviceKind::Cpu, with_tiles, false), "backend.float32_matmul_precision"),
              ElementsAre("high", "medium"));

  const auto gpu = switch_choices(config, config::DeviceKind::Cuda, present, /*reads=*/false);
  EXPECT_THAT(values_of(gpu, "backend.cuda_graph"), ElementsAre("true"));
  EXPECT_THAT(values_of(gpu, "backend.tf32"), ElementsAre("off"));
  EXPECT_THAT(values_of(gpu, "backend.channels_last"), ElementsAre("true"));
  EXPECT_THAT(values_of(gpu, "backend.cudnn_benchmark"), ElementsAre("false"));
  EXPECT_THAT(values_of(gpu, "threads"), ElementsAre());
  PresentValues without_convolutions = present;
  without_convolutions.has_convolutions = false;
  EXPECT_THAT(values_of(switch_choices(config, config::DeviceKind::Cuda, without_convolutions, false), "backend.channels_last"),
              ElementsAre());
  config.precision.amp_mode = config::AmpMode::Fp16;
  EXPECT_THAT(values_of(switch_choices(config, config::DeviceKind::Cuda, present, false), "amp_mode"),
              ElementsAre("none", "bf16"));
}

// The tutorials end with the graph programs.
TEST(BenchChoices, TheLadderEndsWithGraphsWhereThereAreSome) {
  const auto cpu = ladder_rungs({}, config::DeviceKind::Cpu), gpu = ladder_rungs({}, config::DeviceKind::Cuda);
  EXPECT_FALSE(cpu.back().is_measured);
  EXPECT_THAT(cpu.back().note, HasSubstr("no effect"));
  EXPECT_TRUE(gpu.back().is_measured);
  EXPECT_EQ(gpu.back().settings, (KeyValues{{"cuda_graph", "true"}}));
  EXPECT_THAT(gpu.front().settings, testing::Contains(testing::Pair("cuda_graph", "false")));
  for (size_t i = 0; i < cpu.size(); ++i) EXPECT_EQ(cpu[i].name, gpu[i].name);
  EXPECT_TRUE(gpu[2].is_measured) << "page-locked buffers";
  EXPECT_FALSE(cpu[2].is_measured);
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
  for (const std::string& page : {trials_svg("ladder", rows), trials_svg("sweep", rows, "batch", {1, 2, 4})}) {
    for (const char* axis : {">samples/s<", ">ratio to the first<", ">peak memory, MiB<"}) EXPECT_THAT(page, HasSubstr(axis));
  }
  EXPECT_THAT(trials_svg("ladder", rows), HasSubstr(">two</text>"));
}

TEST(BenchTrials, FastestIsWhatIsBeyondTheSpreadOfTheFirst) {
  std::vector<TrialRow> rows{{.name = "skipped", .note = "", .rates = {}}};
  EXPECT_EQ(fastest(rows), nullptr);
  rows.push_back({.name = "first", .note = "", .rates = Rates{{9, 10, 12}, 1}});
  rows.push_back({.name = "as good", .note = "", .rates = Rates{{11, 13, 14}, 1}});
  EXPECT_EQ(fastest(rows)->name, "first");
  rows.push_back({.name = "faster", .note = "", .rates = Rates{{13, 15, 16}, 1}});
  EXPECT_EQ(fastest(rows)->name, "faster");
}

TEST(BenchRates, AnInterruptionEndsThem) {
  int64_t batches = 0;
  const WindowOptions options{.windows = 1000, .window_seconds = 10, .interrupted = [&] { return batches == 5; }};
  EXPECT_THROW(measure_rates(options, {.batch = [&] { return ++batches; }, .settle = [] {}}), Interrupted);
  EXPECT_EQ(batches, 5);
}

TEST(BenchRates, WindowsAreAskedForOneByOne) {
  std::vector<std::string> events;
  std::vector<std::optional<double>> last_rates;
  const WindowOptions options{.warmup_batches = 2, .warmup_seconds = 0, .next_window = [&](std::optional<double> last) {
                                events.emplace_back("ask");
                                last_rates.push_back(last);
                                return last_rates.size() <= 2 ? std::optional<double>(1e-6) : std::nullopt;
                              }};
  const Rates rates = measure_rates(options, {.batch =
                                                  [&] {
                                                    events.emplace_back("batch");
                                                    std::this_thread::sleep_for(std::chrono::microseconds(10));
                                                    return int64_t{4};
                                                  },
                                              .settle = [] {},
                                              .warmed_up = [&] { events.emplace_back("warm"); },
                                              .rest = [&] { events.emplace_back("rest"); }});
  EXPECT_THAT(events, testing::ElementsAre("batch", "batch", "warm", "rest", "ask", "batch", "batch", "batch", "rest", "ask",
                                           "batch", "batch", "batch", "rest", "ask"));
  ASSERT_EQ(rates.windows.size(), 2U);
  EXPECT_EQ(rates.batches, 6) << "those that bring back what was free count as steps made, not as rate";
  EXPECT_THAT(last_rates, testing::ElementsAre(std::nullopt, rates.windows[0], rates.windows[1]));
}

TEST(BenchRates, SomebodyHasToAskForAWindow) {
  const WindowOptions options{.warmup_seconds = 0, .next_window = [](std::optional<double>) { return std::optional<double>(); }};
  EXPECT_THROW(measure_rates(options, {.batch = [] { return int64_t{1}; }, .settle = [] {}}), ConfigError);
}

}  // namespace
}  // namespace welkin::bench
