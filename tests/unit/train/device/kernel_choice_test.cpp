// SPDX-License-Identifier: Apache-2.0
// The kernels that a run's numbers come from stand in its checkpoints; a run that goes on with others says so, or is refused.
#include "train/device/kernel_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/base/instruction_set.h"
#include "ops/base/instruction_support.h"
#include "ops/gemm/mixed_matmul.h"
#include "tiny_run.h"
#include "train/checkpoint/checkpoint.h"
#include "train/device/device.h"
#include "train/interchange/difference.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class KernelChoices : public ::testing::Test {
 protected:
  static config::RunConfig named(const std::filesystem::path& root, config::Gemm gemm, config::InstructionSet instruction_set) {
    config::RunConfig config = tiny_config(root);
    config.backend.gemm = gemm;
    config.backend.instruction_set = instruction_set;
    config.loop.num_iters = 2;
    return config;
  }

  static Checkpoint last_of(const TinyOutcome& outcome) {
    return Checkpoint(outcome.run.folder / "checkpoints" / ("step_" + std::to_string(outcome.run.iterations)));
  }
};

TEST_F(KernelChoices, AreThoseThatRun) {
  config::RunConfig config = named("", config::Gemm::Mkl, config::InstructionSet::Portable);
  const ProcessSession session(config, at::kCPU);
  config.model.dropout = 0;
  const model::ModelEntry with_attention{.build = {}, .has_attention = true, .has_convolutions = false};
  EXPECT_EQ(kernels_line(kernel_choice(config, with_attention, at::kCPU)),
            "Kernels: attention welkin, gemm mkl, instruction_set portable, threads 1");
  config.model.dropout = 0.1;
  EXPECT_EQ(kernel_choice(config, with_attention, at::kCPU).at("kernels.attention"), "welkin");
  EXPECT_EQ(kernel_choice(config, with_attention, at::kCUDA).at("kernels.attention"), "tiles of aten");
  EXPECT_TRUE(kernel_choice(config, model::ModelEntry{}, at::kCPU).contains("kernels.attention")) << "it may have both";
  EXPECT_TRUE(kernel_choice(config, model::ModelEntry{}, at::kCPU).contains("kernels.convolutions"));
  const model::ModelEntry with_convolutions{.build = {}, .has_attention = false, .has_convolutions = true};
  EXPECT_EQ(kernel_choice(config, with_convolutions, at::kCPU).at("kernels.convolutions"), "welkin for multiples of 8");
  EXPECT_FALSE(kernel_choice(config, with_convolutions, at::kCPU).contains("kernels.attention"));
  config.precision.amp_mode = config::AmpMode::Bf16;
  for (const bool widens : {false, true}) {
    const ops::UpcastMatmulGuard rule(widens);
    EXPECT_EQ(kernel_choice(config, with_convolutions, at::kCPU).at("kernels.convolutions"), "welkin for multiples of 8")
        << "in float32, on any set";
    EXPECT_EQ(kernel_choice(config, with_convolutions, at::kCPU).at("kernels.gemm"), widens ? "mkl in float32" : "mkl");
  }
  EXPECT_EQ(kernel_choice(config, with_convolutions, at::kCUDA).at("kernels.gemm"), "cublas, tf32 on");
}

TEST_F(KernelChoices, SayWhetherOperandsOfFloat32AreRounded) {
  config::RunConfig config = named("", config::Gemm::Auto, config::InstructionSet::Auto);
  const auto matmuls = [&] {
    const ProcessSession session(config, at::kCPU);
    return kernel_choice(config, {}, at::kCPU).at("kernels.gemm");
  };
  EXPECT_THAT(matmuls(), Not(HasSubstr("rounded")));
  config.backend.float32_matmul_precision = config::MatmulPrecision::Medium;
  EXPECT_EQ(matmuls() == "onednn of operands rounded to bfloat16", ops::cpu_has_amx_bf16()) << matmuls();
  config.backend.instruction_set = config::InstructionSet::Avx512;
  if (ops::cpu_has_amx_bf16()) {
    EXPECT_EQ(matmuls(), "onednn of operands rounded to bfloat16") << "torch's matmuls know of no set";
  }
  config.backend.instruction_set = config::InstructionSet::Auto;
  config.backend.float32_matmul_precision = config::MatmulPrecision::High;
  EXPECT_EQ(matmuls() == "mkl and welkin of operands in two bfloat16", ops::cpu_has_amx_bf16()) << matmuls();
  config.backend.float32_matmul_precision = config::MatmulPrecision::Medium;
  config.precision.amp_mode = config::AmpMode::Bf16;
  EXPECT_THAT(matmuls(), Not(HasSubstr("rounded"))) << "they are of bfloat16 as they come";
  config.backend.gemm = config::Gemm::Mkl;
  if (ops::cpu_has_amx_bf16()) {
    EXPECT_THROW(ProcessSession(config, at::kCPU), ConfigError) << "mkl rounds nothing";
  }
}

TEST_F(KernelChoices, StandInTheCheckpointAndInItsListing) {
  const ScratchFolder folder;
  const TinyOutcome outcome = run_tiny(named(folder.path(), config::Gemm::Mkl, config::InstructionSet::Portable), {});
  EXPECT_THAT(outcome.log, HasSubstr("Kernels: attention welkin, gemm mkl, instruction_set portable, threads 1"));
  const Checkpoint checkpoint = last_of(outcome);
  EXPECT_EQ(checkpoint.index().facts.at("kernels.gemm"), "mkl");
  EXPECT_EQ(checkpoint.index().facts.at("kernels.instruction_set"), "portable");
  EXPECT_EQ(checkpoint.index().facts.at("device"), "cpu");
  const std::string listing = interchange::listing(interchange::open_state(checkpoint.folder()));
  EXPECT_THAT(listing, HasSubstr("kernels.attention: welkin\n"));
  EXPECT_THAT(listing, HasSubstr("kernels.gemm: mkl\n"));
}

TEST_F(KernelChoices, OfAResumedRunAreSaidToDiffer) {
  const ScratchFolder folder;
  config::RunConfig config = named(folder.path(), config::Gemm::Mkl, config::InstructionSet::Portable);
  run_tiny(config, {});
  config.loop.resume = true;
  config.loop.num_iters = 3;
  EXPECT_THAT(run_tiny(config, {}).log, Not(HasSubstr("Other kernels")));
  if (ops::best_instruction_set() == ops::InstructionSet::Portable) GTEST_SKIP() << "this CPU has one instruction set";
  config.backend.instruction_set = config::InstructionSet::Auto;
  config.loop.num_iters = 4;
  const std::string best(name_of(ops::best_instruction_set()));
  const TinyOutcome other = run_tiny(config, {});
  EXPECT_THAT(other.log, HasSubstr("Other kernels than in the checkpoint: instruction_set portable and " + best +
                                   "; from here on the run equals an uninterrupted one to rounding"));
  EXPECT_EQ(last_of(other).index().facts.at("kernels.instruction_set"), best);
}

TEST_F(KernelChoices, OfADeterministicRunMayNotChange) {
  const ScratchFolder folder;
  config::RunConfig config = named(folder.path(), config::Gemm::Mkl, config::InstructionSet::Portable);
  config.loop.deterministic = true;
  run_tiny(config, {});
  config.loop.resume = true;
  config.loop.num_iters = 3;
  config.loop.threads = 2;
  EXPECT_THAT([&] { run_tiny(config, {}); },
              ::testing::ThrowsMessage<CheckpointError>(
                  HasSubstr("[checkpoint] it was saved with other kernels, which give other bits: threads 1 and 2. Name those of "
                            "the checkpoint with --gemm, --instruction_set and --threads")));
  config.loop.threads = 1;
  EXPECT_TRUE(run_tiny(config, {}).run.completed);
}

TEST(KernelChanges, IgnoreWhatACheckpointDoesNotName) {
  const KernelChoice now{{"kernels.gemm", "mkl"}, {"kernels.threads", "2"}};
  EXPECT_EQ(kernel_changes({}, now), "") << "an earlier version";
  EXPECT_EQ(kernel_changes({{"device", "cuda:0"}, {"kernels.gemm", "onednn"}, {"kernels.threads", "4"}}, now),
            "gemm onednn and mkl, threads 4 and 2");
}

}  // namespace
}  // namespace welkin::train
