// SPDX-License-Identifier: Apache-2.0
// How weights lie in memory for a GPU; the tensors here are on the CPU.
#include "train/step/model_setup.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tiny_run.h"

namespace welkin::train {
namespace {

TEST(GpuLayout, MovesWeightsOfConvolutionsAndNothingElse) {
  Registries registries;
  add_builtins(registries);
  config::ModelConfig config;
  config.model = "unet3d";
  config.scales = 3;
  config.width = 8;
  const model::ModelPtr model = registries.models.at("unet3d").build(
      config, {.in_channels = 4, .out_channels = 5, .grid = {32, 32, 32}, .newest_input_channel = {}});
  model->initialise(3);
  std::vector<at::Tensor> before;
  for (const at::Tensor& parameter : model->parameters()) before.push_back(parameter.detach().clone());
  for (const bool channels_last : {true, false}) {
    to_memory_format(*model, channels_last);
    const auto parameters = model->parameters();
    int64_t boxes = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(parameters[i], before[i]));
      if (parameters[i].dim() != 5) continue;
      ++boxes;
      EXPECT_TRUE(parameters[i].is_contiguous(channels_last ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::Contiguous));
      EXPECT_TRUE(parameters[i].requires_grad() && parameters[i].is_leaf());
    }
    EXPECT_GT(boxes, 5);
  }
  EXPECT_EQ(memory_format(4, true), at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(memory_format(3, true), at::MemoryFormat::Contiguous);
}

}  // namespace
}  // namespace welkin::train
