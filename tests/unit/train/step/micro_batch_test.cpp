// SPDX-License-Identifier: Apache-2.0
#include "train/step/micro_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "probe_bed.h"
#include "tiny_run.h"
#include "train/device/memory_limit.h"
#include "train/recompute/activation_checkpointing.h"
#include "train/step/probe_steps.h"

namespace welkin::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// A step of m samples takes 100 + 10 m bytes and, beyond `bends_at` samples, more than that.
struct SmallMachine {
  int64_t local_batch = 12, limit = 0, bends_at = 1000;
  bool is_tried = true;
  std::vector<int64_t> tried{};

  MicroBatchChoice choose() {
    return choose_micro_batch({.local_batch = local_batch,
                               .buffer_bytes = 2,
                               .room = {limit, "memory_limit_gib"},
                               .is_tried = is_tried,
                               .step_peak = [this](int64_t samples) -> std::optional<int64_t> {
                                 tried.push_back(samples);
                                 const int64_t peak = 100 + 10 * samples + (samples > bends_at ? 1000 : 0);
                                 return peak <= limit ? std::optional(peak) : std::nullopt;
                               },
                               .agree = [](std::vector<double>&) {}});
  }
};

TEST(MicroBatch, IsTheLargestDivisorThatFits) {
  EXPECT_EQ((SmallMachine{.limit = 100 + 12 * 12}.choose().samples), 12);
  EXPECT_EQ((SmallMachine{.limit = 100 + 12 * 12 - 1}.choose().samples), 6);
  EXPECT_EQ((SmallMachine{.limit = 100 + 5 * 12}.choose().samples), 4) << "five and more do not fit, five divides nothing";
  EXPECT_EQ((SmallMachine{.local_batch = 7, .limit = 100 + 6 * 12}.choose().samples), 1);
  EXPECT_EQ((SmallMachine{.local_batch = 1, .limit = 200}.choose().samples), 1);
}

TEST(MicroBatch, SaysWhy) {
  EXPECT_EQ(
      (SmallMachine{.limit = 100 + 6 * 12}.choose().note),
      "micro_batch_size auto: 6 of 12 samples a forward pass, predicted 172 B of 172 B (memory_limit_gib); 100 B and 12 B a "
      "sample, so 12 would take 244 B");
}

// A step that takes more than it should is no reason to end: the next smaller divisor is.
TEST(MicroBatch, TriesTheSizeAndFallsBack) {
  SmallMachine machine{.limit = 300, .bends_at = 5};
  EXPECT_EQ(machine.choose().samples, 4);
  EXPECT_THAT(machine.tried, ElementsAre(1, 2, 12, 6, 4));
  SmallMachine of_ranks{.limit = 300, .is_tried = false};
  EXPECT_EQ(of_ranks.choose().samples, 12);
  EXPECT_THAT(of_ranks.tried, ElementsAre(1, 2));
}

TEST(MicroBatch, IsRefusedWhereNotOneSampleFits) {
  EXPECT_THAT(
      [] { SmallMachine{.limit = 105}.choose(); },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("[micro_batch_size] not even one sample a forward pass fits into memory: "
                                                 "needed=more than there is, limit=105 B (memory_limit_gib). Raise"))));
  EXPECT_THAT([] { SmallMachine{.limit = 111}.choose(); }, ThrowsMessage<ConfigError>(HasSubstr("needed=112 B, limit=111 B")));
}

class MicroBatchOfAModel : public ::testing::Test {
 protected:
  void TearDown() override { limit_cpu_memory(0); }

  static int64_t peak_of(const ProbeBed& bed, int64_t samples) {
    config::RunConfig config = bed.config;
    config.loop.micro_batch_size = samples;
    const SetupSource source{config, bed.registries, bed.spec};
    ProbeSteps steps(bed.layout, source, kProbeLength, [](model::Model&, const parallel::ParamTable&) {});
    steps.run();
    reset_max_cpu_memory();
    steps.run();
    return max_cpu_memory_allocated();
  }
};

TEST_F(MicroBatchOfAModel, FitsAndTheNextDoesNot) {
  count_cpu_memory();
  config::RunConfig config = probe_vit();
  config.loop.global_batch_size = 8;
  config.loop.micro_batch_size.is_auto = true;
  const ProbeBed bed(config, fields_spec());
  const int64_t two = peak_of(bed, 2), four = peak_of(bed, 4);
  const int64_t limit = two + (four - two) * 3 / 4;
  limit_cpu_memory(limit);
  const MicroBatchChoice choice = choose_micro_batch(bed.layout, bed.source(), 1);
  EXPECT_EQ(cpu_memory_limit(), limit) << "the probe's own limit is gone";
  EXPECT_EQ(choice.samples, 2) << choice.note;
  EXPECT_THAT(choice.note, HasSubstr("(memory_limit_gib)"));
}

TEST_F(MicroBatchOfAModel, TakesWhatTheMachineHasWhereNobodySetsALimit) {
  const MemoryRoom room = memory_room(at::kCPU, 1), half = memory_room(at::kCPU, 2);
  EXPECT_GT(room.bytes, half.bytes);
  EXPECT_THAT(room.source, HasSubstr("of what the machine has left"));
  limit_cpu_memory(12345);
  EXPECT_EQ(memory_room(at::kCPU, 2).bytes, 12345);
}

TEST_F(MicroBatchOfAModel, MakesTheRunOfTheNumberItChooses) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path() / "auto");
  config.loop.micro_batch_size.is_auto = true;
  const TinyOutcome chosen = run_tiny(config, {});
  EXPECT_THAT(chosen.log, HasSubstr("micro_batch_size auto: 4 of 4 samples a forward pass, predicted "));
  config.loop.micro_batch_size = 4;
  config.output.expdir = (root.path() / "number").string();
  const TinyOutcome number = run_tiny(config, {});
  EXPECT_THAT(number.log, Not(HasSubstr("micro_batch_size auto")));
  const auto losses = [](const std::string& log) {
    std::string found;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find("loss");
      if (at != std::string::npos && line.find("loss: relative") == std::string::npos) found += line.substr(at) + "\n";
    }
    return found;
  };
  EXPECT_FALSE(losses(number.log).empty());
  EXPECT_EQ(losses(chosen.log), losses(number.log));
}

}  // namespace
}  // namespace welkin::train
