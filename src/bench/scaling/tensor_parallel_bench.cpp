// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling/tensor_parallel_bench.h"

#include <ATen/ops/ones.h>

#include <utility>

#include "parallel/comm/fake_group.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/plans/plans.h"
#include "train/learn/loss.h"

namespace welkin::bench {
namespace {

// One ViT split over all ranks, and its steps without an update.
class SplitVit {
 public:
  SplitVit(const TensorParallelProblem& problem, const model::ModelEntry& vit, const parallel::MakeGroup& make,
           const parallel::World& world)
      : groups_(make, world.rank(), parallel::Mesh("tp-cp-dp", {.dp_replicate = 1, .tp = world.size(), .cp = 1})),
        model_(vit.build(problem.vit.config(), BenchVit::shape())) {
    model_->initialise(1);
    model_->train();
    table_ = parallel::ParamTable::of(*model_);
    const parallel::LayoutOptions layout{.sequence_parallel = problem.sequence_parallel};
    parallel::apply_plan(parallel::vit_plan_of(problem.vit.config(), BenchVit::shape(), groups_.mesh(), layout), *model_, table_,
                         groups_);
    const model::ModelShape shape = BenchVit::shape();
    fields_ = at::ones({problem.vit.samples, shape.in_channels, shape.grid[0], shape.grid[1]});
  }

  void step() {
    loss_->per_sample(model_->forward(fields_, {}), fields_).sum().backward();
    for (const parallel::ParamRow& row : table_.rows()) row.local.mutable_grad().reset();
  }

 private:
  parallel::MeshGroups groups_;
  model::ModelPtr model_;
  parallel::ParamTable table_;
  train::LossPtr loss_ = train::relative_l2();
  at::Tensor fields_;
};

}  // namespace

LinkFigure measure_tensor_parallel(const TensorParallelProblem& problem, const model::ModelEntry& vit, parallel::World& world,
                                   parallel::EmulatedLink& link) {
  SplitVit split(
      problem, vit, [&](const auto& name, auto members) { return world.group(name, std::move(members)); }, world);
  SplitVit silent(
      problem, vit, [](const auto& name, auto members) { return parallel::fake_group(name, std::move(members)); }, world);
  return measure_link([&] { split.step(); }, [&] { silent.step(); }, problem.link_share, world.world_group(), link);
}

}  // namespace welkin::bench
