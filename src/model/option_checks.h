// SPDX-License-Identifier: Apache-2.0
// What builders of models check of configuration and shape, so that all problems come in one ConfigError.
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
  void finish() const;  // ConfigError with what was found, if anything

 private:
  const char* model_;
  std::vector<std::string> found_;
};

void require_channels(Problems& problems, const ModelShape& shape);
// Of a model of fields: a grid of two dims. Finishes, since what follows looks at both.
void require_field(Problems& problems, const ModelShape& shape);
// Of a model of patches, with as many parts of the width as the key of this name says: sizes are positive. Finishes.
void require_patch_sizes(Problems& problems, const config::ModelConfig& config, const char* parts_key, int64_t parts);
// And a grid of whole patches.
void require_patches(Problems& problems, const config::ModelConfig& config, const ModelShape& shape);
void require_heads(Problems& problems, const config::ModelConfig& config);
void require_dropout(Problems& problems, const config::ModelConfig& config);
// embed_dim times mlp_ratio, rounded; at least 1.
int64_t checked_mlp_width(Problems& problems, const config::ModelConfig& config);

// What a run makes again in its backward pass.
CheckpointedBlocks checkpointed_blocks(const config::RunConfig& config);

// What is added to each output channel under `residual`: its earlier state, unless there is none or residual_except names it.
// Finishes: channels have to be there before they are looked for.
std::vector<ResidualRun> checked_residual(Problems& problems, const config::ModelConfig& config, const ModelShape& shape);

}  // namespace welkin::model
