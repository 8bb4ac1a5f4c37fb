// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling/spatial_bench.h"

#include <ATen/ops/ones.h>

#include <utility>

#include "parallel/comm/fake_group.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/plans/plans.h"
#include "parallel/spatial/sample_blocks.h"
#include "train/learn/loss.h"

namespace welkin::bench {
namespace {

// One U-Net whose box is split over all ranks, and its steps without update and without gradient exchange.
class CutUnet {
 public:
  CutUnet(const SpatialProblem& problem, const model::ModelEntry& unet, const parallel::MakeGroup& make,
          const parallel::World& world)
      : groups_(make, world.rank(), parallel::Mesh("w-h-d-dp", {.dp_replicate = 1, .d = world.size()})) {
    config::ModelConfig config;
    config.width = problem.width;
    config.scales = problem.scales;
    const model::ModelShape shape{.in_channels = 4, .out_channels = 5, .grid = {problem.edge, problem.edge, problem.edge}};
    model_ = unet.build(config, shape);
    model_->initialise(1);
    model_->train();
    table_ = parallel::ParamTable::of(*model_);
    const parallel::Plan plan = parallel::unet_plan_of(config, shape, groups_.mesh(), {});
    parallel::apply_plan(plan, *model_, table_, groups_);
    const parallel::Block block =
        parallel::grid_of(*plan.blocks, groups_.mesh()).block(parallel::coordinates_of({world.rank()}, groups_.mesh()).front());
    const parallel::Cells extent = block.extent();
    input_ = at::ones({1, shape.in_channels, extent[0], extent[1], extent[2]});
    target_ = at::ones({1, shape.out_channels, extent[0], extent[1], extent[2]});
  }

  void step() {
    loss_->per_sample(model_->forward(input_, {}), target_).sum().backward();
    for (const parallel::ParamRow& row : table_.rows()) row.local.mutable_grad().reset();
  }

 private:
  parallel::MeshGroups groups_;
  model::ModelPtr model_;
  parallel::ParamTable table_;
  train::LossPtr loss_ = train::relative_l2();
  at::Tensor input_, target_;
};

}  // namespace

LinkFigure measure_spatial(const SpatialProblem& problem, const model::ModelEntry& unet, parallel::World& world,
                           parallel::EmulatedLink& link) {
  CutUnet cut(
      problem, unet, [&](const auto& name, auto members) { return world.group(name, std::move(members)); }, world);
  CutUnet silent(
      problem, unet, [](const auto& name, auto members) { return parallel::fake_group(name, std::move(members)); }, world);
  return measure_link([&] { cut.step(); }, [&] { silent.step(); }, problem.link_share, world.world_group(), link);
}

}  // namespace welkin::bench
