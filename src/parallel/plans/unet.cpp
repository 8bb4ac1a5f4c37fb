// SPDX-License-Identifier: Apache-2.0
// Plans of the U-Nets. Over tp they split output channels: each convolution needs all channels of its input, so results are
// gathered behind every layer. Weights and their training state are split; for boxes 72 % of the weights are in the four
// deepest layers. Boxes are cut into blocks over d, h, w, and fields over h, w: each convolution exchanges halos, within the
// wrappers of tp, and a norm sums over the blocks.
#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "parallel/plans/plans.h"
#include "parallel/spatial/sample_blocks.h"

namespace welkin::parallel {
namespace {

int64_t num_scales(const config::ModelConfig& config) {
  if (config.scales > 0) return config.scales;
  return config.full_scale ? 6 : 5;
}

void refuse_sequence_parallel(const LayoutOptions& options) {
  if (!options.sequence_parallel) return;
  throw ConfigError("parallel", "the U-Net has no tokens to split: sequence_parallel=true", "Leave sequence_parallel away");
}

// The first scale has the fewest channels; the others have multiples of them.
void check_channels(const config::ModelConfig& config, const Mesh& mesh) {
  const int64_t tp = mesh.size(Axis::Tp);
  if (config.width % tp == 0) return;
  throw ConfigError("parallel", cat("the channels cannot be split: width=", config.width, ", tp=", tp),
                    "Take a tensor_parallel that divides the width of the U-Net");
}

// A rank without cells would have nothing to read.
void check_edges(const Cells& cells, const Mesh& mesh) {
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    const int64_t ranks = mesh.size(kSpaceAxisOrder[a]);
    if (ranks <= cells[a]) continue;
    throw ConfigError("parallel",
                      cat("an edge of the box has fewer cells than ranks: axis=", axis_name(kSpaceAxisOrder[a]),
                          ", cells=", cells[a], ", ranks=", ranks),
                      cat("Take at most ", cells[a], " ranks along this axis of spatial"));
  }
}

// A field has one point along d, which stays.
Cells halved(const Cells& cells, int64_t times) {
  return {std::max<int64_t>(cells[0] >> times, 1), cells[1] >> times, cells[2] >> times};
}

// Names the boxes with fewer cells along an axis than ranks, some of which then wait; "" if there are none.
std::string note_of(const Cells& cells, const Mesh& mesh, int64_t scales) {
  std::vector<std::string> parts;
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    const int64_t ranks = mesh.size(kSpaceAxisOrder[a]);
    int64_t first = 1;
    while (first <= scales && halved(cells, first)[a] >= ranks) ++first;
    if (first > scales) continue;
    parts.push_back(cat("along ", axis_name(kSpaceAxisOrder[a]), " from scale ", first, " on (", halved(cells, first)[a], " of ",
                        ranks, " ranks have cells there, ", halved(cells, scales)[a], " at the deepest)"));
  }
  if (parts.empty()) return {};
  return cat("spatial: boxes of deep scales are smaller than the ranks and gather onto fewer of them: ", join(parts, "; "));
}

void cut_sample(Plan& plan, const Cells& cells, const Mesh& mesh, int64_t scales) {
  check_edges(cells, mesh);
  plan.blocks = cells;
  plan.note = note_of(cells, mesh, scales);
}

void add_blocks(Plan& plan, const model::ModelShape& shape, const Mesh& mesh, int64_t scales) {
  const Cells cells{shape.grid.at(0), shape.grid.at(1), shape.grid.at(2)};
  cut_sample(plan, cells, mesh, scales);
  for (int64_t scale = 1; scale <= scales; ++scale) {
    const Cells fine = halved(cells, scale - 1), coarse = halved(cells, scale);
    plan.rows.push_back({cat("conv_down", scale, ".0"), HaloConvolution{fine, coarse}});
    plan.rows.push_back({scale > 1 ? cat("conv_up", scale, ".0") : "conv_last", HaloConvolution{coarse, fine}});
  }
}

}  // namespace

Plan unet2d_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                    const LayoutOptions& options) {
  refuse_sequence_parallel(options);
  check_channels(config, mesh);
  constexpr int64_t kUsualScales = 4;
  const int64_t scales = config.scales > 0 ? config.scales : kUsualScales;
  const bool has_blocks = mesh.size(kSpatial) > 1;
  const Cells whole{1, shape.grid.at(0), shape.grid.at(1)};
  Plan plan;
  if (has_blocks) cut_sample(plan, whole, mesh, scales);
  const auto add = [&](const std::string& path, const Cells& cells) {
    for (const char* conv : {".double_conv.0", ".double_conv.3"}) {
      plan.rows.push_back({path + conv, GatheredChannels{Axis::Tp, /*weight_dim=*/0}});
      if (has_blocks) plan.rows.push_back({path + conv, HaloConvolution{cells, cells}});
    }
    if (!has_blocks) return;
    for (const char* norm : {".double_conv.1", ".double_conv.4"}) plan.rows.push_back({path + norm, BlockNorm{cells}});
  };
  add("inc", whole);
  for (int64_t scale = 1; scale <= scales; ++scale) {
    const Cells fine = halved(whole, scale - 1), coarse = halved(whole, scale);
    const std::string up = cat("up", scales - scale + 1);
    if (has_blocks) plan.rows.push_back({cat("down", scale, ".maxpool_conv.0"), HaloConvolution{fine, coarse}});
    add(cat("down", scale, ".maxpool_conv.1"), coarse);
    plan.rows.push_back({cat(up, ".up"), GatheredChannels{Axis::Tp, /*weight_dim=*/1}});
    if (has_blocks) plan.rows.push_back({cat(up, ".up"), HaloConvolution{coarse, fine}});
    add(cat(up, ".conv"), fine);
  }
  return plan;
}

Plan unet_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                  const LayoutOptions& options) {
  refuse_sequence_parallel(options);
  check_channels(config, mesh);
  Plan plan;
  const int64_t scales = num_scales(config);
  for (int64_t scale = 1; scale <= scales; ++scale) {
    plan.rows.push_back({cat("conv_down", scale), GatheredChannels{Axis::Tp, /*weight_dim=*/0}});
    if (scale > 1) plan.rows.push_back({cat("conv_up", scale), GatheredChannels{Axis::Tp, /*weight_dim=*/1}});
  }
  if (mesh.size(kSpatial) > 1) add_blocks(plan, shape, mesh, scales);
  return plan;
}

}  // namespace welkin::parallel
