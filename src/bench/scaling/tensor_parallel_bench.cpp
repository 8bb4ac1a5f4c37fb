// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling/tensor_parallel_bench.h"

#include <ATen/ops/ones.h>

#include <utility>
#include <vector>

#include "bench/scaling/bench_timing.h"
#include "parallel/comm/fake_group.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/plans/plans.h"
#include "train/learn/loss.h"

namespace welkin::bench {
namespace {

constexpr int64_t kSectionRepeats = 7;
constexpr double kUnlimited = 1e15;  // bytes per second

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

TensorParallelResult measure_tensor_parallel(const TensorParallelProblem& problem, const model::ModelEntry& vit,
                                             parallel::World& world, parallel::EmulatedLink& link) {
  link.latency_s = 0;
  link.bytes_per_second = kUnlimited;
  SplitVit split(
      problem, vit, [&](const auto& name, auto members) { return world.group(name, std::move(members)); }, world);
  SplitVit silent(
      problem, vit, [](const auto& name, auto members) { return parallel::fake_group(name, std::move(members)); }, world);
  split.step();
  silent.step();
  TensorParallelResult figure;
  const int64_t before = link.bytes;
  split.step();
  figure.bytes_per_step = link.bytes - before;
  const parallel::Group& all = world.world_group();
  std::vector<double> computing;
  for (int64_t i = 0; i < kSectionRepeats; ++i) computing.push_back(seconds_together(all, [&] { silent.step(); }));
  figure.link_s = problem.link_share * median_of(computing);
  std::vector<double> over_link, by_gloo, alone;
  for (int64_t i = 0; i < kSectionRepeats; ++i) {
    link.bytes_per_second = static_cast<double>(figure.bytes_per_step) / figure.link_s;
    over_link.push_back(seconds_together(all, [&] { split.step(); }));
    link.bytes_per_second = kUnlimited;
    alone.push_back(seconds_together(all, [&] { silent.step(); }));
    by_gloo.push_back(seconds_together(all, [&] { split.step(); }));
  }
  figure.step_s = median_of(over_link);
  figure.compute_s = median_of(alone);
  figure.gloo_step_s = median_of(by_gloo);
  return figure;
}

nlohmann::ordered_json tensor_parallel_json(const TensorParallelResult& figure) {
  return {{"bytes_per_step", figure.bytes_per_step}, {"link_s", figure.link_s}, {"compute_s", figure.compute_s},
          {"gloo_step_s", figure.gloo_step_s},       {"step_s", figure.step_s}, {"added_fraction", figure.added_fraction()}};
}

}  // namespace welkin::bench
