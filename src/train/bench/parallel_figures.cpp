// SPDX-License-Identifier: Apache-2.0
#include "train/bench/parallel_figures.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "core/stopwatch.h"
#include "parallel/collectives.h"
#include "parallel/data_parallel.h"
#include "parallel/raw_c10d.h"
#include "train/loss.h"

namespace welkin::train::bench {
namespace {

constexpr int64_t kFigureRepeats = 5;

model::ModelShape figure_shape() { return {.in_channels = 8, .out_channels = 8, .grid = {96, 192}}; }

config::ModelConfig figure_config(const OverlapProblem& problem) {
  config::ModelConfig config;
  config.embed_dim = problem.width;
  config.depth = problem.depth;
  config.num_heads = 8;
  config.patch_size = 8;
  config.mlp_ratio = 4;
  config.dropout = 0;
  return config;
}

double of_slowest(const parallel::Group& group, double seconds) {
  return parallel::all_reduce(group, at::full({1}, seconds, at::kDouble), parallel::Reduction::Max).item<double>();
}

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double median_over_ranks(const parallel::Group& group, const std::function<void()>& work) {
  work();
  std::vector<double> seconds;
  for (int64_t i = 0; i < kFigureRepeats; ++i) {
    parallel::barrier(group);
    const Stopwatch watch;
    work();
    seconds.push_back(of_slowest(group, watch.seconds()));
  }
  return median_of(seconds);
}

void set_link(parallel::EmulatedLink& link, double bytes_per_second) {
  link.latency_s = 0;
  link.bytes_per_second = bytes_per_second;
}

}  // namespace

double OverlapFigure::hidden_share() const { return link_s > 0 ? 1 - std::clamp(step_s - compute_s, 0.0, link_s) / link_s : 0; }

OverlapFigure measure_overlap(const OverlapProblem& problem, const model::ModelEntry& vit, const parallel::Group& replicas,
                              parallel::EmulatedLink& link) {
  constexpr double kNoLimit = 1e15;
  const model::ModelShape shape = figure_shape();
  const model::ModelPtr model = vit.build(figure_config(problem), shape);
  model->initialise(1);
  model->train();
  const parallel::ParamTable table = parallel::ParamTable::of(*model);
  set_link(link, kNoLimit);
  parallel::DataParallel exchange(table, replicas, {.bucket_cap_mb = problem.bucket_cap_mb});
  const at::Tensor input = at::ones({problem.samples, shape.in_channels, shape.grid[0], shape.grid[1]});
  const LossPtr loss = relative_l2();
  const auto step = [&](bool exchanges) {
    exchange.backward(loss->per_sample(model->forward(input, {}), input).sum(), exchanges);
    exchange.clear_gradients();
  };
  OverlapFigure figure;
  figure.gradient_bytes = exchange.bytes_per_step();
  const at::Tensor flat = at::zeros({figure.gradient_bytes / 4});
  step(true);  // the buckets are cut anew after the first
  figure.gloo_s = median_over_ranks(replicas, [&] { all_reduce_in_place(replicas, flat); });
  figure.gloo_step_s = median_over_ranks(replicas, [&] { step(true); });
  figure.compute_s = median_over_ranks(replicas, [&] { step(false); });
  figure.link_s = problem.slower * figure.gloo_s;
  set_link(link, static_cast<double>(figure.gradient_bytes) / figure.link_s);
  figure.step_s = median_over_ranks(replicas, [&] { step(true); });
  set_link(link, kNoLimit);
  return figure;
}

double measure_adapter(const parallel::Group& group, int64_t bytes) {
  constexpr int64_t kTurns = 200;
  const at::Tensor values = at::zeros({bytes / 4});
  std::vector<double> ours, raw;
  for (int64_t i = 0; i < kTurns; ++i) {
    parallel::barrier(group);
    const Stopwatch one;
    all_reduce_in_place(group, values);
    ours.push_back(one.seconds());
    parallel::barrier(group);
    const Stopwatch other;
    raw_all_reduce(group, values);
    raw.push_back(other.seconds());
  }
  return of_slowest(group, median_of(ours)) / of_slowest(group, median_of(raw));
}

nlohmann::ordered_json overlap_json(const OverlapFigure& figure) {
  return {{"gradient_bytes", figure.gradient_bytes}, {"gloo_s", figure.gloo_s}, {"link_s", figure.link_s},
          {"compute_s", figure.compute_s},           {"step_s", figure.step_s}, {"gloo_step_s", figure.gloo_step_s},
          {"hidden_share", figure.hidden_share()}};
}

}  // namespace welkin::train::bench
