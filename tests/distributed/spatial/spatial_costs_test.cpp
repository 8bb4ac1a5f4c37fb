// SPDX-License-Identifier: Apache-2.0
// What blocks of boxes cost a rank: activations that it keeps and bytes that it sends, against one process and the plans of the
// halos.
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "core/text.h"
#include "model/layers/conv3d.h"
#include "model/registry.h"
#include "parallel/plans/plans.h"
#include "parallel/spatial/sample_blocks.h"
#include "rank_processes.h"
#include "train/device/memory_limit.h"

namespace welkin::train {
namespace {

constexpr int64_t kFarLimit = int64_t{1} << 40;
constexpr double kShareGoal = 1.1;  // of what one process keeps, divided by the ranks; halos come on top
constexpr int64_t kEdge = 64;

at::Tensor noise(const parallel::Cells& extent) { return at::randn({1, 4, extent[0], extent[1], extent[2]}); }

int64_t bytes_kept(model::Model& model, const at::Tensor& input) {
  const int64_t before = cpu_memory_allocated();
  const at::Tensor output = model.forward(input, {});
  return cpu_memory_allocated() - before;
}

// Of a forward pass of one sample.
struct HaloBytes {
  int64_t sent = 0, received = 0;
};

HaloBytes halos_of(const parallel::Plan& plan, model::Model& model, const parallel::MeshGroups& groups) {
  HaloBytes bytes;
  const parallel::Group& group = groups.along(parallel::kSpatial);
  for (const auto& module : model.modules(/*include_self=*/false)) {
    const auto* layer = dynamic_cast<const model::BoxConvolution*>(module.get());
    if (layer == nullptr) continue;
    for (const parallel::PlanRow& row : plan.rows) {
      const auto* halo = std::get_if<parallel::HaloConvolution>(&row.style);
      if (halo == nullptr || row.pattern != layer->path()) continue;
      const parallel::AxisRule rule{.kernel = 4, .stride = 2, .padding = 1, .transposed = layer->is_transposed()};
      const parallel::HaloPlan halos =
          parallel::halo_plan({.rules = {rule, rule, rule},
                               .in = grid_of(halo->in_cells, groups.mesh()),
                               .out = grid_of(halo->out_cells, groups.mesh())},
                              parallel::coordinates_of(group.ranks(), groups.mesh()), group.group_rank());
      const int64_t cell = 4 * layer->weight.size(layer->is_transposed() ? 0 : 1);
      bytes.sent += cell * halos.cells_sent();
      for (const parallel::HaloMessage& message : halos.receives) bytes.received += cell * message.cells();
    }
  }
  return bytes;
}

int64_t bytes_sent(parallel::Connection& connection) {
  int64_t bytes = 0;
  for (const parallel::CallTotal& total : connection.recorder().totals()) {
    if (total.name == "send" || total.name == "send_receive") bytes += total.bytes;
  }
  return bytes;
}

const parallel::RankTest kCosts("costs_of_blocks", [](parallel::Connection& connection) {
  limit_cpu_memory(kFarLimit);
  model::Registry models;
  model::add_builtin_models(models);
  config::ModelConfig config;
  config.width = 16;
  config.scales = 4;
  const model::ModelShape shape{.in_channels = 4, .out_channels = 5, .grid = {kEdge, kEdge, kEdge}};
  const int64_t ranks = connection.world_size();
  const parallel::MeshSizes sizes{.h = ranks >= 4 ? 2 : 1, .w = ranks >= 8 ? 2 : 1, .d = 2};
  const auto make = [&](const std::string& name, parallel::GroupMembers members) {
    return connection.make_group(name, std::move(members));
  };
  const parallel::MeshGroups groups(make, connection.rank(), parallel::Mesh("w-h-d-dp", sizes));
  const model::ModelPtr unet = models.at("unet3d").build(config, shape);
  unet->initialise(3);
  const auto whole = static_cast<double>(bytes_kept(*unet, noise({kEdge, kEdge, kEdge})));
  parallel::ParamTable table = parallel::ParamTable::of(*unet);
  const parallel::Plan plan = parallel::unet_plan_of(config, shape, groups.mesh(), {});
  parallel::apply_plan(plan, *unet, table, groups);
  const HaloBytes halos = halos_of(plan, *unet, groups);
  const at::Tensor block = noise({kEdge / sizes.d, kEdge / sizes.h, kEdge / sizes.w});
  const auto part = static_cast<double>(bytes_kept(*unet, block));
  EXPECT_LE(part, kShareGoal * whole / static_cast<double>(ranks) + static_cast<double>(halos.received))
      << cat(part, " of ", whole, " bytes, halos ", halos.received);
  const int64_t before = bytes_sent(connection);
  unet->forward(block, {});
  EXPECT_EQ(bytes_sent(connection) - before, halos.sent);
});

TEST(SpatialCosts, OfTwoRanks) { parallel::run_on_ranks("costs_of_blocks", 2); }
TEST(SpatialCosts, OfFourRanks) { parallel::run_on_ranks("costs_of_blocks", 4); }
TEST(SpatialCosts, OfEightRanks) { parallel::run_on_ranks("costs_of_blocks", 8, 120); }

}  // namespace
}  // namespace welkin::train
