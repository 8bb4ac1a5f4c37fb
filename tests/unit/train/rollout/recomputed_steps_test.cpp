// SPDX-License-Identifier: Apache-2.0
// What training over several steps of the model takes: activations of all steps, or of one where they run again.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "core/text.h"
#include "probe_bed.h"
#include "train/device/device_memory.h"
#include "train/recompute/activation_checkpointing.h"
#include "train/step/probe_steps.h"

namespace welkin::train {
namespace {

struct Measured {
  double peak = 0, kept = 0;        // bytes: while a step is made, and between steps
  std::vector<at::Tensor> weights;  // after two steps
  double of_step() const { return peak - kept; }
};

Measured measure(const config::RunConfig& config) {
  Registries registries;
  add_builtins(registries);
  const data::SampleSpec spec = fields_spec();
  const SetupSource source{config, registries, spec};
  const parallel::World world;
  const auto make = [&world](const std::string& name, parallel::GroupMembers members) {
    return world.group(name, std::move(members));
  };
  const Layout layout = make_layout({make, 0, parallel::mesh_of(config.parallel, 1)}, source);
  ProbeSteps steps(layout, source, kProbeLength,
                   [&](model::Model& model, const parallel::ParamTable& table) { checkpoint_activations(model, table, config); });
  steps.run();
  Measured measured;
  measured.kept = static_cast<double>(cpu_memory_allocated());
  reset_peak_memory(at::kCPU);
  steps.run();
  measured.peak = static_cast<double>(max_memory_allocated(at::kCPU));
  for (const parallel::ParamRow& row : steps.setup().table.rows()) measured.weights.push_back(row.local.detach().clone());
  return measured;
}

TEST(RecomputedSteps, TakeTheMemoryOfOneStepAndGiveTheSameWeights) {
  config::RunConfig config = probe_vit();
  const Measured one = measure(config);
  config.loss.multistep = 6;
  const Measured six = measure(config);
  config.loss.multistep_recompute = true;
  const Measured again = measure(config);
  EXPECT_GT(six.of_step(), 4 * one.of_step()) << "activations of six steps";
  EXPECT_LT(again.of_step(), 1.5 * one.of_step()) << "those of one, and six states";
  ASSERT_EQ(again.weights.size(), six.weights.size());
  for (size_t i = 0; i < six.weights.size(); ++i) EXPECT_TRUE(at::equal(again.weights[i], six.weights[i])) << i;
  config.loop.activation_checkpointing = config::CheckpointedPart::Blocks;  // within a step that runs again
  const Measured both = measure(config);
  EXPECT_LT(both.of_step(), again.of_step());
  for (size_t i = 0; i < six.weights.size(); ++i) EXPECT_TRUE(at::equal(both.weights[i], six.weights[i])) << i;
}

}  // namespace
}  // namespace welkin::train
