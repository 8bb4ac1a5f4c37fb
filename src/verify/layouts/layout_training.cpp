// SPDX-License-Identifier: Apache-2.0
#include "verify/layouts/layout_training.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/text.h"
#include "model/base/init.h"
#include "parallel/comm/collectives.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/pipeline/pipeline_engine.h"
#include "parallel/shard/data_parallel.h"
#include "parallel/shard/model_parallel_gradients.h"
#include "parallel/shard/shards.h"
#include "parallel/sharding/sharded_parallel.h"
#include "train/learn/loss.h"
#include "train/learn/sample_shard.h"
#include "train/learn/weighted_loss.h"
#include "train/rollout/training_rollout.h"

namespace welkin::verify {
namespace {

constexpr uint64_t kSeed = 11;
constexpr int64_t kSteps = 3;
constexpr double kRate = 0.05;
constexpr double kClipNorm = 0.5;  // below the norms that occur: clipping acts

// Fields: 35 tokens with patches of 4 points: no size from 2 to 8 but 5 and 7 divides them.
model::ModelShape problem_shape(const model::ModelEntry& model) {
  if (model.grid_rank == 3) return {.in_channels = 3, .out_channels = 2, .grid = {8, 8, 8}};
  return {.in_channels = 3, .out_channels = 2, .grid = {20, 28}};
}

// (n, ...) for the dims of the grid.
std::vector<int64_t> with_grid(std::vector<int64_t> sizes, const model::ModelShape& shape) {
  sizes.insert(sizes.end(), shape.grid.begin(), shape.grid.end());
  return sizes;
}

data::SampleSpec spec_of(const model::ModelShape& shape) {
  data::SampleSpec spec;
  spec.input.shape = with_grid({shape.in_channels}, shape);
  spec.target.shape = with_grid({shape.out_channels}, shape);
  return spec;
}

config::ModelConfig problem_config(const LayoutCase& c, const model::ModelEntry& model) {
  config::ModelConfig config;
  config.embed_dim = 32;
  config.depth = c.depth;
  config.patch_size = 4;
  config.num_heads = 8;
  config.mlp_ratio = 2.0;
  config.dropout = c.dropout;
  config.qkv = c.joint_qkv ? config::QkvLayout::Joint : config::QkvLayout::Separate;
  config.width = 8;
  config.window_size = {1, 7};
  config.scales = model.grid_rank == 3 ? 3 : 2;  // 20 and 28 points are 5 and 7 at the deepest
  return config;
}

at::Tensor values_of(const std::string& name, at::IntArrayRef shape, double deviation = 1.0) {
  at::Tensor values = at::empty(shape, at::kFloat);
  model::fill_normal(values, kSeed, name, deviation);
  return values.to(at::kDouble);
}

// Every parameter is random: zeros and ones would hide errors in biases and norms.
model::ModelPtr make_model(const LayoutSubject& subject, const LayoutCase& c, c10::Device device) {
  model::ModelPtr model = subject.model.build(problem_config(c, subject.model), problem_shape(subject.model));
  model->to(device, at::kDouble);
  for (const auto& parameter : model->named_parameters()) {
    const bool is_norm_weight = parameter.key().find("norm") != std::string::npos && parameter.key().ends_with("weight");
    parameter->set_data(values_of(parameter.key(), parameter->sizes(), 0.2).add(is_norm_weight ? 1.0 : 0.0).to(device));
  }
  return model;
}

// Points without a value, and channels and rows that differ.
train::ElementWeights weights_of(const model::ModelShape& shape, c10::Device device) {
  const auto options = at::TensorOptions(device).dtype(at::kDouble);
  train::ElementWeights weights{.holes = true, .channels = at::arange(1, shape.out_channels + 1, options)};
  if (shape.grid.size() == 2) weights.rows = at::arange(1, shape.grid[0] + 1, options);
  return weights;
}

// Half of the first channel has no value, so that ranks which share a sample have very different numbers of points, and a quarter
// of what is left.
at::Tensor with_holes(const at::Tensor& target, int64_t step) {
  const double hole = std::numeric_limits<double>::quiet_NaN();
  at::Tensor values = target.masked_fill(values_of(cat("holes", step), target.sizes()).gt(0.67), hole);
  values.select(1, 0).narrow(-1, 0, values.size(-1) / 2).fill_(hole);
  return values;
}

class LayoutTraining {
 public:
  LayoutTraining(const LayoutSubject& subject, const LayoutCase& c, const parallel::MeshGroups& groups, c10::Device device)
      : case_(c), groups_(groups), device_(device), shape_(problem_shape(subject.model)), model_(make_model(subject, c, device)) {
    run_.table = parallel::ParamTable::of(*model_);
    const parallel::Plan plan = subject.plan.make(problem_config(c, subject.model), shape_, groups.mesh(), c.options);
    if (c.schedule == config::PipelineSchedule::ZeroBubble) {
      weights_ = std::make_shared<parallel::WeightQueue>();
      parallel::defer_weight_gradients(*model_, run_.table, weights_);
    }
    apply_plan(plan, *model_, run_.table, groups, weights_);
    model_->train();
    shard_ = train::SampleShard(plan, groups, spec_of(shape_));
    if (c.weights) loss_ = train::weighted_loss(std::move(loss_), weights_of(shape_, device_), "relative_l2");
    if (c.steps > 1) roll_out();
    if (c.sizes.pp > 1) cut_into_stages();
    exchange_gradients();
  }

  LayoutRun run() {
    for (int64_t step = 0; step < kSteps; ++step) train_step(step);
    if (reducer_) reducer_->complete_weights();
    for (const parallel::ParamRow& row : run_.table.rows()) {
      run_.weights.push_back(row.is_released ? gathered_whole(sharding_.shards, row, row.shard) : row.local.detach().clone());
    }
    return std::move(run_);
  }

 private:
  const parallel::Group& stages() const { return groups_.along(parallel::Axis::Pp); }

  void cut_into_stages() {
    const std::vector<model::Segment> segments = model_->segments();
    const std::vector<double> costs(segments.size(), 1);
    const parallel::PipelineOptions options{.schedule = case_.schedule,
                                            .chunks = case_.chunks(),
                                            .stages = parallel::balanced_stages(costs, stages().size() * case_.chunks()),
                                            .weights = weights_};
    pipeline_ = std::make_unique<parallel::PipelineEngine>(segments, stages(), options);
    const StepData data = data_of(0);
    pipeline_->learn_shapes({data.input.detach().narrow(0, 0, 1), context_of(data, 0, 1)});
    pipeline_->keep_own(run_.table);
  }

  // The first channels of the input are the target's, the others are known.
  void roll_out() {
    config::RunConfig config;
    config.loss.multistep = case_.steps;
    config.data.nan_policy = case_.weights ? config::NanPolicy::Hole : config::NanPolicy::Off;
    rollout_.emplace(spec_of(shape_), config, shard_.region(), device_);
  }

  void exchange_gradients() {
    const bool has_cp = !shard_.is_whole();
    const bool is_shared = case_.shard != config::ShardStage::None;
    if (!has_cp && !is_shared && case_.comm_dtype == parallel::GradientDtype::Same) return;
    exchange_ = groups_.along(has_cp ? parallel::kDp | parallel::kSampleParts : parallel::kDp);
    if (!is_shared) {
      reducer_ = std::make_unique<parallel::DataParallel>(run_.table, exchange_,
                                                          parallel::DataParallelOptions{.comm_dtype = case_.comm_dtype});
      return;
    }
    const parallel::AxisSet shard = parallel::Axis::DpShard;
    sharding_ = {.shards = groups_.along(has_cp ? shard | parallel::kSampleParts : shard),
                 .replicas = groups_.along(parallel::Axis::DpReplicate),
                 .with_cp = has_cp};
    reducer_ = std::make_unique<parallel::ShardedParallel>(
        *model_, run_.table, sharding_, parallel::ShardingOptions{.stage = case_.shard, .comm_dtype = case_.comm_dtype});
    if (pipeline_) {
      pipeline_->surround_forward([this](int64_t chunk) { reducer_->before_chunk(chunk); },
                                  [this] { reducer_->after_forward(); });
    }
  }

  // By which the loss is scaled up where the exchange averages.
  int64_t loss_factor() const { return reducer_ && reducer_->averages() ? exchange_.size() : 1; }

  const parallel::Group& dp() const { return groups_.along(parallel::kDp); }

  // This rank's samples of a step, what of them it reads.
  struct StepData {
    int64_t step;
    at::Tensor input, target, samples;
  };

  StepData data_of(int64_t step) const {
    const int64_t local = kBatch / dp().size();
    const int64_t first = dp().group_rank() * local;
    const data::Region region = shard_.region().value_or(data::whole(spec_of(shape_)));
    const auto own = [&](const char* name, int64_t channels) {
      at::Tensor whole = values_of(cat(name, step), with_grid({kBatch, channels}, shape_));
      if (case_.weights && name == std::string_view("target")) whole = with_holes(whole, step);
      at::Tensor part = whole.narrow(0, first, local);
      for (size_t a = 0; a < shape_.grid.size(); ++a) {
        part = part.narrow(2 + static_cast<int64_t>(a), region.begin[a], region.extent[a]);
      }
      return part.contiguous().to(device_);
    };
    return {
        .step = step,
        .input =
            own("input", shape_.in_channels + (case_.steps - 1) * (shape_.in_channels - shape_.out_channels)).requires_grad_(),
        .target = own("target", case_.steps * shape_.out_channels),
        .samples = at::arange(first, first + local, at::TensorOptions(device_).dtype(at::kLong)) + step * kBatch};
  }

  int64_t num_micro() const { return std::min(case_.num_micro, kBatch / dp().size()); }

  // Output of a micro-batch, and its part of the loss.
  std::pair<at::Tensor, at::Tensor> forward(const StepData& data, int64_t micro) {
    const int64_t local = data.input.size(0);
    const int64_t begin = micro * local / num_micro();
    const int64_t count = (micro + 1) * local / num_micro() - begin;
    const at::Tensor input = data.input.narrow(0, begin, count);
    if (rollout_) return rolled_out(data, input, begin);
    const at::Tensor output = forward_once(input, context_of(data, begin, count));
    return {output, loss_of(data, output, begin)};
  }

  at::Tensor forward_once(const at::Tensor& input, const model::ForwardContext& context) {
    if (reducer_) reducer_->before_forward();
    at::Tensor output = model_->forward(input, context);
    if (reducer_) reducer_->after_forward();
    return output;
  }

  // The output of the first step, and the loss of all.
  std::pair<at::Tensor, at::Tensor> rolled_out(const StepData& data, const at::Tensor& input, int64_t begin) {
    const train::StepOfModel step{
        .forward = [this](const at::Tensor& in, const model::ForwardContext& context) { return forward_once(in, context); },
        .losses = [this](const at::Tensor& output, const at::Tensor& target) { return shard_.losses(*loss_, output, target); }};
    at::Tensor first;
    const at::Tensor losses =
        rollout_->losses(input, data.target.narrow(0, begin, input.size(0)), context_of(data, begin, input.size(0)), step,
                         [&first](const at::Tensor& output) { first = output; });
    return {first, losses.sum() / static_cast<double>(kBatch)};
  }

  model::ForwardContext context_of(const StepData& data, int64_t begin, int64_t count) const {
    const at::Tensor step = at::full({}, data.step, at::TensorOptions(device_).dtype(at::kLong));
    return {.seed = kSeed, .step = step, .sample = data.samples.narrow(0, begin, count)};
  }

  at::Tensor loss_of(const StepData& data, const at::Tensor& output, int64_t begin) const {
    const at::Tensor target = data.target.narrow(0, begin, output.size(0));
    return shard_.losses(*loss_, output, target).sum() / static_cast<double>(kBatch);
  }

  void backward(const at::Tensor& root, bool is_last) {
    if (!reducer_) return root.backward();
    reducer_->backward(root, is_last);
  }

  // As forward() and backward() for every micro-batch, by this rank's stages.
  void pipeline_step(const StepData& data, at::Tensor& loss, std::vector<at::Tensor>& outputs) {
    const int64_t local = data.input.size(0);
    const auto begin = [&](int64_t micro) { return micro * local / num_micro(); };
    const auto count = [&](int64_t micro) { return begin(micro + 1) - begin(micro); };
    parallel::PipelineStep step{.micros = num_micro(), .samples = count};
    step.batch = [&](int64_t micro) -> parallel::PipelineBatch {
      return {data.input.narrow(0, begin(micro), count(micro)), context_of(data, begin(micro), count(micro))};
    };
    step.loss = [&](int64_t micro, const at::Tensor& output) {
      const at::Tensor part = loss_of(data, output, begin(micro));
      loss += part.detach();
      outputs.push_back(output.detach());
      return part * loss_factor();
    };
    step.backward = [&](const at::Tensor& root, const parallel::GradientPass& pass) {
      reducer_ ? reducer_->backward_chunk(root, pass) : root.backward();
    };
    step.weights = [&](const std::function<void()>& compute, const parallel::GradientPass& pass) {
      reducer_ ? reducer_->weights_of_chunk(compute, pass) : compute();
    };
    if (pipeline_->run(step) || !reducer_ || reducer_->joins_every_backward()) return;
    at::Tensor nothing = at::zeros({}, at::TensorOptions(device_).dtype(at::kDouble));
    for (const parallel::ParamRow& row : run_.table.rows()) nothing = nothing + 0 * row.local.sum();
    reducer_->backward(nothing, /*is_last=*/true);
  }

  void train_step(int64_t step) {
    const StepData data = data_of(step);
    if (step == 0 && case_.comm_dtype != parallel::GradientDtype::Same) measure_sent(data);
    at::Tensor loss = at::zeros({}, at::TensorOptions(device_).dtype(at::kDouble));
    std::vector<at::Tensor> outputs;
    if (pipeline_) pipeline_step(data, loss, outputs);
    for (int64_t micro = 0; !pipeline_ && micro < num_micro(); ++micro) {
      const auto [output, part] = forward(data, micro);
      backward(part * loss_factor(), micro + 1 == num_micro());
      loss += part.detach();
      outputs.push_back(output.detach());
    }
    finish_step(step, loss);
    if (step > 0) return;
    if (!outputs.empty()) run_.output = shard_.whole_fields(at::cat(outputs));
    at::Tensor of_input = data.input.grad();
    if (pipeline_) {  // any stage may look at the input
      const at::NoGradGuard no_grad;
      of_input = all_reduce(stages(), of_input.defined() ? of_input : at::zeros_like(data.input));
    }
    if (of_input.defined()) run_.input_gradient = shard_.whole_fields(of_input / loss_factor());
  }

  // The same step without its exchange. Parts over tokens may be large where their sum is nothing, as for a key's bias: what they
  // are rounded by follows from the parts. What tp and cp do afterwards with the exchanged sums, they do with their errors.
  void measure_sent(const StepData& data) {
    for (int64_t micro = 0; micro < num_micro(); ++micro) {
      reducer_->backward(forward(data, micro).second * loss_factor(), /*is_last=*/false);
    }
    const at::NoGradGuard no_grad;
    std::vector<double> largest;
    for (const parallel::ParamRow& row : run_.table.rows()) largest.push_back(magnitude(row.local.grad()));
    run_.sent = all_reduce(exchange_, at::tensor(largest, at::kDouble) / loss_factor());
    for (const parallel::Axis axis : {parallel::Axis::Tp, parallel::Axis::Cp}) {
      if (axis == parallel::Axis::Cp && !shard_.is_whole()) continue;  // part of the exchange
      const at::Tensor sums = all_reduce(groups_.along(axis), run_.sent);
      run_.sent = all_reduce(groups_.along(axis), run_.sent, parallel::Reduction::Max);
      for (size_t i = 0; i < largest.size(); ++i) {
        const auto row = static_cast<int64_t>(i);
        if (run_.table.rows()[i].partial_over.contains(axis)) run_.sent[row] = sums[row];
      }
    }
    reducer_->clear_gradients();
    data.input.mutable_grad() = at::Tensor();
  }

  // Over dp every gradient and the loss are sums; then what tp and cp owe, clipping and a plain step, which hides no scale.
  void finish_step(int64_t step, const at::Tensor& loss) {
    const at::NoGradGuard no_grad;
    run_.losses.push_back(all_reduce(stages(), all_reduce(dp(), loss)).item<double>());
    std::vector<at::Tensor> gradients;
    if (!reducer_) sum_gradients(run_.table, dp());
    for (const parallel::ParamRow& row : run_.table.rows()) gradients.push_back(row.gradient());
    if (shard_.is_whole()) {
      reduce_model_parallel_gradients(run_.table, groups_);
    } else {
      reduce_model_parallel_gradients(run_.table, groups_, parallel::Axis::Tp);
    }
    if (step == 0) {
      for (const parallel::ParamRow& row : run_.table.rows()) {
        run_.gradients.push_back(row.shard.defined() ? gathered_whole(sharding_.shards, row, row.gradient())
                                                     : row.gradient().clone());
      }
    }
    const at::Tensor square = global_square_norm(run_.table, gradients, groups_, sharding_.shards);
    const double norm = all_reduce(stages(), square).sqrt().item<double>();
    const double rate = kRate * std::min(1.0, kClipNorm / norm);
    for (const parallel::ParamRow& row : run_.table.rows()) {
      row.trained().detach().sub_(row.gradient(), rate);
      if (!reducer_) row.local.mutable_grad() = at::Tensor();
    }
    if (!reducer_) return;
    reducer_->after_update();
    reducer_->clear_gradients();
  }

  LayoutCase case_;
  const parallel::MeshGroups& groups_;
  c10::Device device_;
  model::ModelShape shape_;
  model::ModelPtr model_;
  train::LossPtr loss_ = train::relative_l2();
  LayoutRun run_;
  train::SampleShard shard_;
  parallel::Group exchange_;                             // of the reducer
  parallel::ShardGroups sharding_;                       // of it, those who share out the training state
  std::unique_ptr<parallel::GradientExchange> reducer_;  // as in training; without one gradients are summed plainly
  std::optional<train::TrainingRollout> rollout_;        // of several steps of the model
  std::shared_ptr<parallel::WeightQueue> weights_;       // null where gradients by weights do not wait
  std::unique_ptr<parallel::PipelineEngine> pipeline_;   // null where no pipeline cuts the model
};

}  // namespace

double magnitude(const at::Tensor& values) { return values.abs().max().item<double>(); }

bool has_segments(const LayoutSubject& subject) {
  return !subject.model.build(problem_config({}, subject.model), problem_shape(subject.model))->segments().empty();
}

LayoutRun train_under(const LayoutSubject& subject, const LayoutCase& c, const parallel::MeshGroups& groups, c10::Device device) {
  return LayoutTraining(subject, c, groups, device).run();
}

}  // namespace welkin::verify
