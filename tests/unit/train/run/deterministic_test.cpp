// SPDX-License-Identifier: Apache-2.0
// --deterministic, TF32 and cuDNN: what the configuration asks of torch, and the same bits run to run.
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "tiny_run.h"
#include "tolerance.h"
#include "train/device/device.h"

namespace welkin::train {
namespace {

config::RunConfig on_one_thread() {
  config::RunConfig config;
  config.loop.threads = 1;
  return config;
}

TEST(ProcessSession, FollowsTheKeys) {
  at::Context& context = at::globalContext();
  const ProcessSession session(on_one_thread(), at::kCPU);
  EXPECT_FALSE(context.deterministicAlgorithms());
  EXPECT_TRUE(context.userEnabledCuDNN());
  EXPECT_TRUE(context.benchmarkCuDNN());
  EXPECT_FALSE(context.deterministicCuDNN());
  EXPECT_TRUE(context.allowTF32CuDNN());
  EXPECT_TRUE(context.allowTF32CuBLAS()) << "on for cuBLAS too, unlike torch's own default";
  config::RunConfig config = on_one_thread();
  config.backend = {.tf32 = config::Tf32::Off,
                    .cudnn_enabled = false,
                    .cudnn_benchmark = false,
                    .cudnn_deterministic = true,
                    .offload = {},
                    .offload_path = {}};
  const ProcessSession other(config, at::kCPU);
  EXPECT_FALSE(context.userEnabledCuDNN());
  EXPECT_FALSE(context.benchmarkCuDNN());
  EXPECT_TRUE(context.deterministicCuDNN());
  EXPECT_FALSE(context.allowTF32CuDNN());
  EXPECT_FALSE(context.allowTF32CuBLAS());
}

// A configuration that sets everything leaves nothing behind, whether it is applied or refused.
TEST(ProcessSession, PutsBackWhatItFound) {
  const ProcessSettings before = current_settings(at::kCPU);
  config::RunConfig config;
  config.loop.threads = before.threads + 1;
  config.loop.deterministic = true;
  config.backend = {.tf32 = config::Tf32::On,
                    .cudnn_enabled = false,
                    .cudnn_benchmark = true,
                    .cudnn_deterministic = true,
                    .memory_limit_gib = 64,
                    .offload = {},
                    .offload_path = {},
                    .float32_matmul_precision = config::MatmulPrecision::High,
                    .instruction_set = config::InstructionSet::Portable};
  {
    const ProcessSession session(config, at::kCPU);
    const ProcessSettings now = current_settings(at::kCPU);
    EXPECT_EQ(now, settings_of(config, at::kCPU));
    EXPECT_EQ(now.threads, before.threads + 1);
    EXPECT_EQ(now.instruction_set, ops::InstructionSet::Portable);
    EXPECT_EQ(now.memory_limit_gib, 64);
    ProcessSettings without_limit = now;
    without_limit.memory_limit_gib = 0;
    const ProcessSession inner(without_limit);
    ops::set_attention_backend(ops::AttentionBackend::Math);  // as a set-up does
    EXPECT_EQ(current_settings(at::kCPU).memory_limit_gib, 0);
  }
  EXPECT_EQ(current_settings(at::kCPU), before);
  if (ops::is_supported(ops::InstructionSet::Amx)) {
    config.backend.gemm = config::Gemm::OneDnn;  // would round there
    EXPECT_THROW(ProcessSession(config, at::kCPU), ConfigError);
    EXPECT_EQ(current_settings(at::kCPU), before);
  }
}

TEST(ProcessSession, DeterministicAsksForDeterministicAlgorithms) {
  config::RunConfig config = on_one_thread();
  config.loop.deterministic = true;
  const ProcessSession session(config, at::kCPU);
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_FALSE(at::globalContext().deterministicAlgorithmsWarnOnly());
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
}

// All that a run leaves: the files of its last checkpoint and the values of its log.
struct Trace {
  std::map<std::string, std::string> files;
  std::vector<std::string> values;

  bool operator==(const Trace&) const = default;
};

Trace trace_of(int64_t workers, bool deterministic, int64_t threads = 1) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.deterministic = deterministic;
  config.loop.threads = threads;
  config.loop.micro_batch_size = 3;
  config.data.num_data_workers = workers;
  const TinyOutcome outcome = run_tiny(config, {});
  Trace trace;
  for (const auto& entry : std::filesystem::directory_iterator(outcome.run.folder / "checkpoints" / "step_13")) {
    if (entry.path().extension() == ".safetensors") trace.files[entry.path().filename()] = read_file(entry.path(), 1 << 26);
  }
  const std::regex pattern("Avg (train|val) loss=(\\S+)");
  for (std::sregex_iterator match(outcome.log.begin(), outcome.log.end(), pattern), end; match != end; ++match) {
    trace.values.push_back(match->str());
  }
  return trace;
}

TEST(ProcessSession, DeterministicRunsAreEqualBitForBitForAnyReadingThreads) {
  const Trace reference = trace_of(/*workers=*/0, /*deterministic=*/true);
  EXPECT_EQ(reference.files.size(), 4u);  // model, optimizer, state, and the picture of the epoch that is cut short
  EXPECT_EQ(reference.values.size(), 6u);
  for (const int64_t workers : {0, 1, 3}) EXPECT_EQ(trace_of(workers, true), reference) << workers << " reading threads";
}

// Sums over threads are added up in their order: the same number of threads gives the same bits, another number other last ones.
TEST(ProcessSession, OperatorThreadsChangeRoundingOnly) {
  const auto losses = [](const Trace& trace) {
    std::vector<double> values;
    for (const std::string& value : trace.values) values.push_back(std::stod(value.substr(value.find('=') + 1)));
    return values;
  };
  const Trace two = trace_of(1, true, /*threads=*/2);
  EXPECT_EQ(trace_of(3, true, /*threads=*/2), two);
  const std::vector<double> one = losses(trace_of(1, true, 1)), other = losses(two);
  ASSERT_EQ(one.size(), other.size());
  constexpr int64_t kSums = 13 * 2 * 8 * 8;  // steps times values of a sample
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(tests::close(one[i], other[i], kFp32, kSums));
}

}  // namespace
}  // namespace welkin::train
