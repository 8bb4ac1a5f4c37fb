// SPDX-License-Identifier: Apache-2.0
// What can be built by name. Passed down from main, never global; a plug-in adds rows through `welkin_register`.
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

// The shapes that the data decides: channels of input and target, grid of the sample.
struct ModelShape {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  std::vector<int64_t> grid;         // (H, W) or (D, H, W)
  int64_t newest_input_channel = 0;  // first channel of the newest input step, for residual prediction
  // Of each output channel: the input channel of the newest step that is the same quantity, -1 where there is none, and its name.
  // Empty: those from newest_input_channel on, without names.
  std::vector<int64_t> earlier{};
  std::vector<std::string> out_names{};
};

// The attention of one block, before any axis splits it.
struct AttentionSize {
  int64_t heads = 0, head_dim = 0, tokens = 0;
};

// A row: how a model is built, and what is known of it without building it. Only `build` is required; what else is absent costs
// the model an estimate or a line of a log, never a run.
struct ModelEntry {
  std::function<ModelPtr(const config::ModelConfig&, const ModelShape&)> build;
  std::function<ModelCost(const config::ModelConfig&, const ModelShape&)> cost = {};   // FLOPs: MFU, plan estimate, bench layers
  std::function<MemoryCost(const config::RunConfig&, const ModelShape&)> memory = {};  // activations: plan estimate
  std::function<AttentionSize(const config::ModelConfig&, const ModelShape&)> attention = {};  // its GPU form is then measured
  std::string default_loss = "relative_l2";  // where the configuration has no key `loss`
  int64_t grid_rank = 2;                     // of the samples that it takes: 2 for (H, W), 3 for (D, H, W)
  std::string around_globe = {};             // what of it takes the eastern edge for the western one's neighbour; empty: nothing
  // Whose kernels logs and checkpoints name; not said: both.
  std::optional<bool> has_attention = std::nullopt, has_convolutions = std::nullopt;
};

class Registry {
 public:
  void add(std::string name, ModelEntry entry);         // ConfigError when the name is taken
  const ModelEntry& at(const std::string& name) const;  // ConfigError with the known names
  std::vector<std::string> names() const;
  std::map<std::string, std::string> default_losses() const;  // by model

 private:
  std::map<std::string, ModelEntry> entries_;
};

// Those of config/schema/builtin_models.h. Their builders check configuration against shape: all
// problems in one ConfigError.
void add_builtin_models(Registry& registry);

}  // namespace welkin::model
