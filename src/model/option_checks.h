// SPDX-License-Identifier: Apache-2.0
// Checks of configuration and shape for builders of models; all problems come in one ConfigError.
#pragma once

#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "model/base/memory_cost.h"
#include "model/base/residual.h"
#include "model/registry.h"

namespace welkin::model {

// Collects all problems before it throws.
class Problems {
 public:
  explicit Problems(const char* model) : model_(model) {}

  void require(bool holds, const std::string& what) {
    if (!holds) found_.push_back(what);
  }
  void finish() const;  // ConfigError with all problems, if there are any

 private:
  const char* model_;
  std::vector<std::string> found_;
};

void require_channels(Problems& problems, const ModelShape& shape);
// For models of fields: requires a grid of two dims. Calls finish(), since later checks use both.
void require_field(Problems& problems, const ModelShape& shape);
// For models of patches whose width is divided into `parts` (named by the key): requires positive sizes. Calls finish().
void require_patch_sizes(Problems& problems, const config::ModelConfig& config, const char* parts_key, int64_t parts);
// Requires a grid of whole patches.
void require_patches(Problems& problems, const config::ModelConfig& config, const ModelShape& shape);
void require_heads(Problems& problems, const config::ModelConfig& config);
void require_dropout(Problems& problems, const config::ModelConfig& config);
// embed_dim times mlp_ratio, rounded; at least 1.
int64_t checked_mlp_width(Problems& problems, const config::ModelConfig& config);

// The blocks that a run recomputes in its backward pass.
CheckpointedBlocks checkpointed_blocks(const config::RunConfig& config);

// Input channels added to output channels under `residual`: the earlier state, unless it is absent or residual_except names the
// channel. Calls finish(), since channels must exist before they are looked up.
std::vector<ResidualRun> checked_residual(Problems& problems, const config::ModelConfig& config, const ModelShape& shape);

}  // namespace welkin::model
