// SPDX-License-Identifier: Apache-2.0
// What is chosen for a budget of memory takes what was predicted, and the choosing leaves no trace.
#include "train/step/checkpointing_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "number_close.h"
#include "probe_bed.h"
#include "tiny_steps.h"
#include "train/device/memory_limit.h"
#include "train/recompute/activation_checkpointing.h"
#include "train/step/probe_steps.h"

namespace welkin::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kGib = int64_t{1} << 30;

void set_budget(config::RunConfig& config, double bytes) {
  config.loop.activation_checkpointing = config::CheckpointedPart::Budget;
  config.loop.activation_checkpointing.budget_gib = bytes / kGib;
}

int64_t measured_peak(const ProbeBed& bed, const std::vector<std::string>& sites) {
  ProbeSteps steps(bed.layout, bed.source(), kProbeLength,
                   [&](model::Model& model, const parallel::ParamTable& table) { run_again(sites_named(model, sites), table); });
  for (int i = 0; i < 2; ++i) steps.run();
  reset_max_cpu_memory();
  steps.run();
  return max_cpu_memory_allocated() - steps.extra_bytes();
}

void expect_predicted_bytes(const config::RunConfig& config, const data::SampleSpec& spec) {
  count_cpu_memory();
  const ProbeBed bed(config, spec);
  const ProbedStep probed = probe_step(bed.layout, bed.source(), kProbeLength);
  const auto least = static_cast<double>(smallest_plan(probed.memory).peak);
  const auto plain = static_cast<double>(plan_with(probed.memory, std::vector<size_t>(probed.memory.parts.size(), 0)).peak);
  EXPECT_LT(least, 0.98 * plain);
  size_t most_sites = 0;
  for (const double share : {0.0, 0.5, 1.0}) {
    config::RunConfig own = config;
    set_budget(own, least + share * (plain - least) + 1024);
    const BudgetChoice choice = choose_within(probed, own);
    const int64_t peak = measured_peak(bed, choice.sites);
    EXPECT_TRUE(tests::within(static_cast<double>(peak) / static_cast<double>(choice.peak_bytes), 1.0, {0.05, "the goal"}))
        << peak << " measured, " << choice.peak_bytes << " predicted: " << choice.note;
    EXPECT_EQ(choice.sites.empty(), share == 1.0) << choice.note;
    most_sites = std::max(most_sites, choice.sites.size());
  }
  EXPECT_GT(most_sites, 0U);
}

TEST(CheckpointingBudget, PredictsTheBytesOfAVit) { expect_predicted_bytes(probe_vit(), fields_spec()); }

TEST(CheckpointingBudget, PredictsTheBytesOfAVitInMicroBatches) {
  config::RunConfig config = probe_vit();
  config.loop.micro_batch_size = 2;
  config.precision.amp_mode = config::AmpMode::Bf16;
  expect_predicted_bytes(config, fields_spec());
}

TEST(CheckpointingBudget, PredictsTheBytesOfAUnet) { expect_predicted_bytes(probe_unet(), boxes_spec()); }

TEST(CheckpointingBudget, SaysTheLeastThatIsPossible) {
  count_cpu_memory();
  config::RunConfig config = probe_vit();
  set_budget(config, 1024);
  const ProbeBed bed(config, fields_spec());
  EXPECT_THAT([&] { choose_for_budget(bed.layout, bed.source(), kProbeLength); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("[activation_checkpointing] a step takes more than the budget, whatever "
                                                         "runs again: budget=1.0 KiB, least possible="),
                                               HasSubstr("Say at least budget:"))));
}

// The run's own weights, states, masks and counter are those of a run that nobody measured.
TEST(CheckpointingBudget, LeavesNoTrace) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 2;
  TinySteps plain(config, nullptr);
  for (const double gib : {1e-9, 100.0}) {
    config::RunConfig own = config;
    set_budget(own, gib * kGib);
    if (gib < 1) {
      EXPECT_THROW(TinySteps(own, nullptr), ConfigError);
      continue;
    }
    TinySteps chosen(own, nullptr);
    EXPECT_THAT(chosen.setup().checkpointing_note, HasSubstr("within 100 GiB: nothing runs again; predicted "));
    for (int64_t step = 0; step < 5; ++step) expect_equal_steps(chosen.next(), plain.next(), step);
    expect_equal_runs(chosen, plain);
  }
}

TEST(CheckpointingBudget, IsKeptByTheRunItChoosesFor) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.model.patch_size = 1;
  config.model.depth = 4;
  config.loop.micro_batch_size = 4;
  TinySteps plain(config, nullptr);
  set_budget(config, 100 * kGib);
  const int64_t all = TinySteps(config, nullptr).setup().predicted->peak_bytes;
  set_budget(config, 0.85 * static_cast<double>(all));
  TinySteps chosen(config, nullptr);
  EXPECT_THAT(chosen.setup().checkpointing_note, HasSubstr(" run again; predicted "));
  EXPECT_LE(chosen.setup().predicted->peak_bytes, all * 85 / 100);
  for (int64_t step = 0; step < 5; ++step) expect_equal_steps(chosen.next(), plain.next(), step);
  expect_equal_runs(chosen, plain);
}

}  // namespace
}  // namespace welkin::train
