// SPDX-License-Identifier: Apache-2.0
// What can be built by name. Passed down from main, never global; a plug-in adds rows through `welkin_register`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "model/base/model.h"
#include "model/base/model_cost.h"

namespace welkin::model {

// The shapes that the data decides: channels of input and target, grid of the sample.
struct ModelShape {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  std::vector<int64_t> grid;         // (H, W) or (D, H, W)
  int64_t newest_input_channel = 0;  // first channel of the newest input step, for residual prediction
};

struct ModelEntry {
  std::function<ModelPtr(const config::ModelConfig&, const ModelShape&)> build;
  std::function<ModelCost(const config::ModelConfig&, const ModelShape&)> cost;  // may be empty
  std::string default_loss = "relative_l2";
};

class Registry {
 public:
  void add(std::string name, ModelEntry entry);         // ConfigError when the name is taken
  const ModelEntry& at(const std::string& name) const;  // ConfigError with the known names
  std::vector<std::string> names() const;

 private:
  std::map<std::string, ModelEntry> entries_;
};

// "vit" (both arrangements of q, k, v, by ModelConfig::qkv) and "unet3d". Their builders check configuration against shape: all
// problems in one ConfigError.
void add_builtin_models(Registry& registry);

}  // namespace welkin::model
