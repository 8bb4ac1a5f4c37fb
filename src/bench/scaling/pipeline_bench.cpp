// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling/pipeline_bench.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>

#include "core/stopwatch.h"
#include "parallel/comm/collectives.h"
#include "parallel/pipeline/pipeline_engine.h"
#include "parallel/pipeline/schedule_timing.h"

namespace welkin::bench {
namespace {

constexpr int64_t kPipelineRepeats = 5;

// The time that passes take, and the time slept so far.
struct SleepingWork {
  double pass_s = 0;
  double slept_s = 0;
  std::shared_ptr<parallel::WeightQueue> queue{};  // zero_bubble

  void sleep() {
    const Stopwatch watch;
    std::this_thread::sleep_for(std::chrono::duration<double>(pass_s));
    slept_s += watch.seconds();
  }
};

struct SleepBackward : torch::autograd::Function<SleepBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, SleepingWork* work) {
    context->saved_data["work"] = reinterpret_cast<int64_t>(work);  // NOLINT: outlives the step
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    work_of(*context).sleep();
    return {grads[0], at::Tensor()};
  }
  static SleepingWork& work_of(torch::autograd::AutogradContext& context) {
    return *reinterpret_cast<SleepingWork*>(context.saved_data["work"].toInt());  // NOLINT
  }
};

// A stage: computes the input's gradient, then the weights' gradients, which wait if there is a queue.
struct SleepingStage : torch::autograd::Function<SleepingStage> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            SleepingWork* work) {
    context->saved_data["work"] = reinterpret_cast<int64_t>(work);  // NOLINT: outlives the step
    context->save_for_backward({weight});
    work->sleep();
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    SleepingWork& work = SleepBackward::work_of(*context);
    work.sleep();
    if (!work.queue) {
      work.sleep();
      return {grads[0], at::Tensor(), at::Tensor()};
    }
    const at::AutoGradMode with_grad(true);
    const at::Tensor leaf = at::ones({1}).requires_grad_();
    work.queue->now.add(context->get_saved_variables()[0], [root = SleepBackward::apply(leaf, &work), leaf] {
      return torch::autograd::grad({root}, {leaf}, {at::ones({1})}).at(0);
    });
    return {grads[0], at::Tensor(), at::Tensor()};
  }
};

PipelineFigure measure_schedule(const PipelineProblem& problem, parallel::World& world, PipelineFigure figure) {
  const parallel::Group& ranks = world.world_group();
  SleepingWork work{.pass_s = problem.pass_ms / 1e3 / static_cast<double>(figure.chunks)};
  if (figure.schedule == config::PipelineSchedule::ZeroBubble) work.queue = std::make_shared<parallel::WeightQueue>();
  const at::Tensor weight = at::zeros({1}).requires_grad_();
  std::vector<model::Segment> segments;
  parallel::PipelineOptions options{.schedule = figure.schedule, .chunks = figure.chunks, .stages = {}, .weights = work.queue};
  for (int64_t stage = 0; stage < ranks.size() * figure.chunks; ++stage) {
    const auto run = [&work, &weight, stage](model::Tensors in, const at::Tensor& input, const model::ForwardContext&) {
      return model::Tensors{SleepingStage::apply(stage == 0 ? input : in.at(0), weight, &work)};
    };
    segments.push_back({.name = "stage", .layers = {}, .run = run});
    options.stages.push_back({stage, stage + 1});
  }
  parallel::PipelineEngine engine(std::move(segments), ranks, options);
  const parallel::PipelineBatch batch{at::ones({1, problem.values}), {}};
  engine.learn_shapes(batch);
  const parallel::PipelineStep step{.micros = figure.micros,
                                    .samples = [](int64_t) { return 1; },
                                    .batches = [&](int64_t) { return std::vector{batch}; },
                                    .loss = [](int64_t, int64_t, const model::Tensors& outputs) { return outputs.at(0).sum(); },
                                    .backward = [](const at::Tensor& root, const parallel::GradientPass&) { root.backward(); }};
  std::vector<std::pair<double, double>> steps;  // seconds, and the idle fraction of the ranks
  for (int64_t repeat = 0; repeat <= kPipelineRepeats; ++repeat) {
    parallel::barrier(ranks);
    work.slept_s = 0;
    const Stopwatch watch;
    engine.run(step);
    parallel::barrier(ranks);
    const at::Tensor seconds = parallel::all_reduce(ranks, at::full({1}, watch.seconds(), at::kDouble), parallel::Reduction::Max);
    const at::Tensor slept = parallel::all_reduce(ranks, at::full({1}, work.slept_s, at::kDouble));
    const double length = seconds.item<double>();
    if (repeat > 0) steps.emplace_back(length, 1 - slept.item<double>() / static_cast<double>(ranks.size()) / length);
  }
  std::ranges::nth_element(steps, steps.begin() + kPipelineRepeats / 2);
  std::tie(figure.step_s, figure.idle) = steps[kPipelineRepeats / 2];
  figure.promised = parallel::promised_bubble(figure.schedule, {ranks.size(), figure.micros, figure.chunks}).value();
  figure.most_held = engine.most_held();
  return figure;
}

}  // namespace

std::vector<PipelineFigure> measure_pipeline(const PipelineProblem& problem, parallel::World& world) {
  using config::PipelineSchedule;
  std::vector<PipelineFigure> figures;
  for (const PipelineSchedule schedule : {PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward,
                                          PipelineSchedule::Interleaved, PipelineSchedule::ZeroBubble}) {
    for (const int64_t micros : problem.micros) {
      const PipelineFigure wanted{
          .schedule = schedule, .micros = micros, .chunks = schedule == PipelineSchedule::Interleaved ? 2 : 1};
      if (!parallel::problem_of(schedule, {world.size(), micros, wanted.chunks}).what.empty()) continue;
      figures.push_back(measure_schedule(problem, world, wanted));
    }
  }
  return figures;
}

nlohmann::ordered_json pipeline_json(const std::vector<PipelineFigure>& figures) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PipelineFigure& figure : figures) {
    rows.push_back({{"schedule", config::name_of(figure.schedule)},
                    {"micro_batches", figure.micros},
                    {"chunks", figure.chunks},
                    {"step_s", figure.step_s},
                    {"idle", figure.idle},
                    {"formula", figure.promised},
                    {"held_on_rank_0", figure.most_held}});
  }
  return rows;
}

}  // namespace welkin::bench
