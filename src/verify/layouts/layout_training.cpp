// SPDX-License-Identifier: Apache-2.0
#include "verify/layouts/layout_training.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
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
#include "train/checkpoint/shared_checkpoint.h"
#include "train/checkpoint/whole_tensors.h"
#include "train/learn/loss.h"
#include "train/learn/sample_shard.h"
#include "train/learn/weighted_loss.h"
#include "train/rollout/training_rollout.h"
#include "train/step/model_setup.h"
#include "verify/layouts/layout_problem.h"

namespace welkin::verify {
namespace {

constexpr double kRate = 0.05, kMomentum = 0.5;
constexpr double kClipNorm = 0.5;  // below the norms that occur: clipping acts
constexpr double kInputNoise = 0.1;

class LayoutTraining {
 public:
  LayoutTraining(const LayoutSubject& subject, const LayoutCase& c, const parallel::MeshGroups& groups, c10::Device device)
      : case_(c),
        groups_(groups),
        device_(device),
        shape_(problem_shape(subject.model)),
        model_(problem_model(subject, c, device)) {
    run_.table = parallel::ParamTable::of(*model_);
    const parallel::Plan plan = subject.plan.make(problem_config(c, subject.model), shape_, groups.mesh(), c.options);
    if (c.schedule == config::PipelineSchedule::ZeroBubble) {
      weights_ = std::make_shared<parallel::WeightQueue>();
      parallel::defer_weight_gradients(*model_, run_.table, weights_);
    }
    apply_plan(plan, *model_, run_.table, groups, weights_);
    model_->train();
    shard_ = train::SampleShard(plan, groups, problem_spec(shape_));
    if (c.weights) loss_ = train::weighted_loss(std::move(loss_), problem_weights(shape_, device_), "relative_l2");
    if (c.steps > 1 || c.members > 1) roll_out();
    if (c.sizes.pp > 1) cut_into_stages();
    exchange_gradients();
    for (const parallel::ParamRow& row : run_.table.rows()) momenta_.push_back(at::zeros_like(row.trained().detach()));
  }

  void train(int64_t from_step, int64_t to_step) {
    for (int64_t step = from_step; step < to_step; ++step) train_step(step);
  }

  LayoutRun result() {
    if (reducer_) reducer_->complete_weights();
    for (const parallel::ParamRow& row : run_.table.rows()) {
      run_.weights.push_back(row.is_released ? gathered_whole(sharding_.shards, row, row.shard) : row.local.detach().clone());
    }
    return std::move(run_);
  }

  void save(const std::filesystem::path& folder, const parallel::Group& world) {
    if (reducer_) reducer_->complete_weights();
    if (case_.shard != config::ShardStage::None) {
      write_shared_checkpoint(world, folder, own_tensors(checkpoint_groups(), tensor_layout()),
                              [] { return std::optional(train::CheckpointIndex{}); });
    } else {
      train::WholeGroups whole(checkpoint_groups(), tensor_layout());
      if (world.group_rank() == 0) train::write_checkpoint(folder, {}, whole.groups());
      whole.join_others();
    }
    parallel::barrier(world);
  }

  void load(const std::filesystem::path& folder, const parallel::Group& world) {
    const train::Checkpoint checkpoint = train::open_shared_checkpoint(world, folder);
    for (const train::CheckpointGroup& group : checkpoint_groups()) read_parts(checkpoint, group, tensor_layout());
    if (!reducer_) return;
    reducer_->after_update();  // gathered weights follow the loaded ones
    reducer_->complete_weights();
  }

  const std::vector<double>& losses() const { return run_.losses; }

 private:
  std::vector<train::CheckpointGroup> checkpoint_groups() {
    train::CheckpointGroup optimizer{.name = "optimizer", .tensors = {}};
    for (size_t i = 0; i < momenta_.size(); ++i) {
      optimizer.tensors.push_back({cat("momentum.", run_.table.rows()[i].name), momenta_[i]});
    }
    return {train::model_group(run_.table, *model_), std::move(optimizer)};
  }

  train::TensorLayout tensor_layout() const {
    const bool is_first_of_sample = sharding_.with_cp || groups_.along(parallel::kSampleParts).group_rank() == 0;
    return {.table = run_.table,
            .groups = groups_,
            .shards = sharding_.shards,
            .is_copy = sharding_.replicas.group_rank() != 0 || !is_first_of_sample,
            .stages = stages()};
  }

  const parallel::Group& stages() const { return groups_.along(parallel::Axis::Pp); }

  void cut_into_stages() {
    const std::vector<model::Segment> segments = model_->segments();
    const std::vector<double> costs(segments.size(), 1);
    const parallel::PipelineOptions options{.schedule = case_.schedule,
                                            .chunks = case_.chunks(),
                                            .stages = parallel::balanced_stages(costs, stages().size() * case_.chunks()),
                                            .weights = weights_};
    const auto tied = parallel::tied_stages(segments, options.stages, run_.table, groups_);
    pipeline_ = std::make_unique<parallel::PipelineEngine>(segments, stages(), options);
    const StepData data = data_of(0);
    const at::Tensor input = data.input.detach().narrow(0, 0, 1).narrow(1, 0, shape_.in_channels);
    pipeline_->learn_shapes({input, context_of(data, 0, 1)});
    pipeline_->keep_own(run_.table, tied);
  }

  // The first channels of the input are the target's, the others are known.
  void roll_out() {
    config::RunConfig config;
    config.loss.multistep = case_.steps;
    config.loss.ensemble_members = case_.members;
    if (case_.members > 1) config.loss.input_noise = kInputNoise;
    config.data.nan_policy = case_.weights ? config::NanPolicy::Hole : config::NanPolicy::Off;
    rollout_.emplace(problem_spec(shape_), config, shard_.region(), device_);
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

  // The factor on the loss that makes up for an exchange that averages.
  int64_t loss_factor() const { return reducer_ && reducer_->averages() ? exchange_.size() : 1; }

  const parallel::Group& dp() const { return groups_.along(parallel::kDp); }

  // This rank's samples of a step, and of them the part that it reads.
  StepData data_of(int64_t step) const {
    const int64_t local = case_.batch / dp().size();
    return problem_data(case_, shape_, {.step = step, .first = dp().group_rank() * local, .count = local},
                        shard_.region().value_or(data::whole(problem_spec(shape_))), device_);
  }

  int64_t num_micro() const { return std::min(case_.num_micro, case_.batch / dp().size()); }

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
    return {first, losses.sum() / static_cast<double>(case_.batch)};
  }

  model::ForwardContext context_of(const StepData& data, int64_t begin, int64_t count) const {
    const at::Tensor step = at::full({}, data.step, at::TensorOptions(device_).dtype(at::kLong));
    return {.seed = kProblemSeed, .step = step, .sample = data.samples.narrow(0, begin, count)};
  }

  at::Tensor loss_of(const StepData& data, const at::Tensor& output, int64_t begin) const {
    const at::Tensor target = data.target.narrow(0, begin, output.size(0));
    return shard_.losses(*loss_, output, target).sum() / static_cast<double>(case_.batch);
  }

  void backward(const at::Tensor& root, bool is_last) {
    if (!reducer_) return root.backward();
    reducer_->backward(root, is_last);
  }

  // Like forward() and backward() for every micro-batch, by this rank's stages.
  void pipeline_step(const StepData& data, at::Tensor& loss, std::vector<at::Tensor>& outputs) {
    const int64_t local = data.input.size(0);
    const auto begin = [&](int64_t micro) { return micro * local / num_micro(); };
    const auto count = [&](int64_t micro) { return begin(micro + 1) - begin(micro); };
    const auto own = [&](const at::Tensor& whole, int64_t micro) { return whole.narrow(0, begin(micro), count(micro)); };
    parallel::PipelineStep step{.micros = num_micro(), .leads = case_.steps, .members = case_.members, .samples = count};
    step.batches = [&](int64_t micro) {
      const at::Tensor input = own(data.input, micro);
      std::vector<parallel::PipelineBatch> members;
      for (int64_t member = 0; member < case_.members; ++member) {
        const model::ForwardContext context =
            train::TrainingRollout::context_of_member(context_of(data, begin(micro), count(micro)), member);
        members.push_back({rollout_ ? rollout_->start(input, own(data.target, micro), context) : input, context});
      }
      return members;
    };
    const auto losses = [this](const at::Tensor& output, const at::Tensor& target) {
      return shard_.losses(*loss_, output, target);
    };
    step.loss = [&](int64_t micro, int64_t lead, const model::Tensors& of_members) {
      const at::Tensor target = own(data.target, micro).narrow(1, (lead - 1) * shape_.out_channels, shape_.out_channels);
      const at::Tensor part =
          train::TrainingRollout::score(of_members, target, losses).sum() / static_cast<double>(case_.batch * case_.steps);
      loss += part.detach();
      if (lead == 1) outputs[static_cast<size_t>(micro)] = of_members.front().detach();
      return part * loss_factor();
    };
    step.next_input = [&](int64_t micro, int64_t lead, const at::Tensor& input, const at::Tensor& output) {
      return rollout_->next(input, output, own(data.input, micro), own(data.target, micro), lead);
    };
    step.context = train::TrainingRollout::context_of;
    if (pipeline_->has_output()) outputs.resize(static_cast<size_t>(num_micro()));
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
    if (pipeline_) {  // any stage may read the input
      const at::NoGradGuard no_grad;
      of_input = all_reduce(stages(), of_input.defined() ? of_input : at::zeros_like(data.input));
    }
    if (of_input.defined()) run_.input_gradient = shard_.whole_fields(of_input / loss_factor());
  }

  // The same step without its exchange. Parts over tokens may be large although their sum is zero, as for a key's bias: their
  // rounding follows from the parts. The later sums over tp and cp also sum the errors of the exchange.
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

  // Over dp every gradient and the loss are sums. Then come the sums over tp and cp, clipping, and a step with momentum, which
  // hides no scale.
  void finish_step(int64_t step, const at::Tensor& loss) {
    const at::NoGradGuard no_grad;
    run_.losses.push_back(all_reduce(stages(), all_reduce(dp(), loss)).item<double>());
    std::vector<at::Tensor> gradients;
    if (!reducer_) sum_gradients(run_.table, dp());
    if (shard_.is_whole()) {
      reduce_model_parallel_gradients(run_.table, groups_);
    } else {
      reduce_model_parallel_gradients(run_.table, groups_, parallel::Axis::Tp);
    }
    sum_tied_gradients(run_.table);
    for (const parallel::ParamRow& row : run_.table.rows()) gradients.push_back(row.gradient());
    if (step == 0) {
      for (const parallel::ParamRow& row : run_.table.rows()) {
        run_.gradients.push_back(row.shard.defined() ? gathered_whole(sharding_.shards, row, row.gradient())
                                                     : row.gradient().clone());
      }
    }
    const at::Tensor square = global_square_norm(run_.table, gradients, groups_, sharding_.shards);
    const double norm = all_reduce(stages(), square).sqrt().item<double>();
    const double factor = std::min(1.0, kClipNorm / norm);
    for (size_t i = 0; i < momenta_.size(); ++i) {
      const parallel::ParamRow& row = run_.table.rows()[i];
      momenta_[i].mul_(kMomentum).add_(row.gradient(), factor);
      row.trained().detach().sub_(momenta_[i], kRate);
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
  std::vector<at::Tensor> momenta_;  // by row, of the part that this rank trains
  train::SampleShard shard_;
  parallel::Group exchange_;                             // of the reducer
  parallel::ShardGroups sharding_;                       // within it: ranks that share out the training state
  std::unique_ptr<parallel::GradientExchange> reducer_;  // as in training; null: gradients are summed plainly
  std::optional<train::TrainingRollout> rollout_;        // for several steps of the model
  std::shared_ptr<parallel::WeightQueue> weights_;       // null if weight gradients do not wait
  std::unique_ptr<parallel::PipelineEngine> pipeline_;   // null without a pipeline
};

}  // namespace

double magnitude(const at::Tensor& values) { return values.abs().max().item<double>(); }

LayoutRun train_under(const LayoutSubject& subject, const LayoutCase& c, const parallel::MeshGroups& groups, c10::Device device) {
  LayoutTraining training(subject, c, groups, device);
  training.train(0, kProblemSteps);
  return training.result();
}

LayoutRun train_moved(const LayoutSubject& subject, const PlacedLayout& before, const PlacedLayout& after,
                      const parallel::Group& world, const std::filesystem::path& folder, c10::Device device) {
  std::vector<double> losses;
  {
    LayoutTraining training(subject, before.layout, before.groups, device);
    training.train(0, 1);
    training.save(folder, world);
    losses = training.losses();
  }
  LayoutTraining training(subject, after.layout, after.groups, device);
  training.load(folder, world);
  training.train(1, kProblemSteps);
  LayoutRun run = training.result();
  run.losses.insert(run.losses.begin(), losses.begin(), losses.end());
  return run;
}

}  // namespace welkin::verify
