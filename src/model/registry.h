// SPDX-License-Identifier: Apache-2.0
// The models that can be built by name. Passed down from main, never global; a plug-in adds rows through `welkin_register`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "model/base/memory_cost.h"
#include "model/base/model.h"
#include "model/base/model_cost.h"

namespace welkin::model {

// Shapes that the data determines: channels of input and target, grid of the sample.
struct ModelShape {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  std::vector<int64_t> grid;         // (H, W) or (D, H, W)
  int64_t newest_input_channel = 0;  // first channel of the newest input step, for residual prediction
  // For each output channel: the input channel of the newest step with the same quantity, or -1; and its name.
  // Empty: the channels from newest_input_channel on, without names.
  std::vector<int64_t> earlier{};
  std::vector<std::string> out_names{};
};

// The attention of one block of the whole model, before it is split.
struct AttentionSize {
  int64_t heads = 0, head_dim = 0, tokens = 0;
};

// A row: how a model is built, and facts about it without building it. Only `build` is required. Without another member the
// model lacks an estimate or a line of a log, but it runs.
struct ModelEntry {
  std::function<ModelPtr(const config::ModelConfig&, const ModelShape&)> build;
  std::function<ModelCost(const config::ModelConfig&, const ModelShape&)> cost = {};   // FLOPs: MFU, plan estimate, bench layers
  std::function<MemoryCost(const config::RunConfig&, const ModelShape&)> memory = {};  // activations: plan estimate
  std::function<AttentionSize(const config::ModelConfig&, const ModelShape&)> attention = {};  // its GPU form is then measured
  std::string default_loss = "relative_l2";  // used if the configuration has no key `loss`
  int64_t grid_rank = 2;                     // of the model's samples: 2 for (H, W), 3 for (D, H, W)
  std::string around_globe = {};             // the part of it that is periodic in longitude; empty: none
  // Selects the kernels that logs and checkpoints name; not set: both.
  std::optional<bool> has_attention = std::nullopt, has_convolutions = std::nullopt;
};

class Registry {
 public:
  void add(std::string name, ModelEntry entry);         // ConfigError when the name is taken
  const ModelEntry& at(const std::string& name) const;  // ConfigError with the known names
  std::vector<std::string> names() const;
  std::map<std::string, std::string> default_losses() const;  // by name of the model

 private:
  std::map<std::string, ModelEntry> entries_;
};

// Adds the models of config/schema/builtin_models.h. Builders check configuration against shape: all
// problems in one ConfigError.
void add_builtin_models(Registry& registry);

}  // namespace welkin::model
