// SPDX-License-Identifier: Apache-2.0
// Plans by configuration: the rows of the registry of plans. A model's plan is made from the same keys and shape as the model.
#pragma once

#include <functional>

#include "config/schema/run_config.h"
#include "model/registry.h"
#include "parallel/mesh/mesh.h"
#include "parallel/plans/plan.h"
#include "parallel/plans/vit.h"

namespace welkin::parallel {

// ConfigError when the model cannot be split over this mesh.
using PlanFactory = std::function<Plan(const config::ModelConfig&, const model::ModelShape&, const Mesh&, const LayoutOptions&)>;

// A row: the function that makes a model's plan, and the axes over which it can split the model.
struct PlanEntry {
  PlanFactory make;
  AxisSet axes = Axis::Tp | Axis::Cp;
  // false: it exchanges tokens for channels (all_to_all), whatever context_mode says about attention.
  bool has_context_modes = true;
};

// "vit".
Plan vit_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                 const LayoutOptions& options);

// "unet3d", over tp: every convolution but the last makes a part of its channels. Over d, h, w: each rank has a block of the
// box. ConfigError when the channels do not divide, when an edge has fewer cells than ranks, or for sequence_parallel.
Plan unet_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                  const LayoutOptions& options);

// "afno", over tp: each rank has some of the filter's blocks of channels, and some of the MLP's hidden features. Over cp, h, w:
// some of the tokens, and in the filter some of the blocks of channels. ConfigError when something does not divide.
Plan afno_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                  const LayoutOptions& options);

// "sfno", over tp: each rank makes some channels of the spectral convolution, and has some of the MLP's hidden features. Over
// h, w: a block of the field, and some of the channels or degrees in a transform. ConfigError as for "afno", for
// sequence_parallel, and if a rank would have no degree, row or column of the inner grid.
Plan sfno_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                  const LayoutOptions& options);

// "swin", over tp: heads and hidden features, like the ViT's; with sequence_parallel also tokens, outside of attention and MLP.
// Over cp, h, w: tokens, and heads within windows. ConfigError when heads or hidden features do not divide.
Plan swin_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                  const LayoutOptions& options);

// "unet2d", over tp: every convolution but the last makes a part of its channels. Over h, w: each rank has a block of the
// field. ConfigError as for "unet3d".
Plan unet2d_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                    const LayoutOptions& options);

}  // namespace welkin::parallel
