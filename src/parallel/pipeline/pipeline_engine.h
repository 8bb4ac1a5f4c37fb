// SPDX-License-Identifier: Apache-2.0
// Runs this rank's stages of a model: a step's passes as the table of its schedule says, and forward passes alone. It knows no
// loss, no optimizer and no data: the caller gives micro-batches, makes a loss of the output, and starts backward passes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/schema/choices.h"
#include "model/base/segment.h"
#include "parallel/comm/group.h"
#include "parallel/pipeline/deferred_weights.h"
#include "parallel/pipeline/schedule.h"
#include "parallel/pipeline/stage_cut.h"
#include "parallel/pipeline/tied_stages.h"
#include "parallel/shard/gradient_exchange.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

struct PipelineOptions {
  config::PipelineSchedule schedule = config::PipelineSchedule::OneForwardOneBackward;
  int64_t chunks = 1;
  std::vector<StageRange> stages;          // of the segments; rank r has stages r, r + ranks, ...
  std::shared_ptr<WeightQueue> weights{};  // zero_bubble: where its backward passes leave what gradients of weights are made of
};

struct PipelineBatch {
  at::Tensor input;  // (B, ...) of the whole model; of every stage, which looks at what it needs
  model::ForwardContext context;
};

// One step. Every rank of the pipeline has the same micro-batches. Leads, steps of the model which are fed with the prediction of
// the one before, are counted from 1.
struct PipelineStep {
  int64_t micros = 0;
  int64_t leads = 1;
  int64_t members = 1;                              // predictions of a sample, which go through every pass together
  bool only_last = false;                           // the last lead alone has a gradient; one engine is always told the same
  std::optional<at::ScalarType> autocast{};         // of forward passes and losses
  std::function<int64_t(int64_t micro)> samples{};  // of a micro-batch: B
  // Of the first lead, by member; once for each micro-batch, in their order.
  std::function<std::vector<PipelineBatch>(int64_t micro)> batches{};
  // (), of each lead and the outputs of its members, where the last stage is; what a lead without a gradient gives is not looked
  // at.
  std::function<at::Tensor(int64_t micro, int64_t lead, const model::Tensors& outputs)> loss{};
  // Of several leads. next_input: a member's of the lead after this one, where the last stage is, with a gradient by both.
  std::function<at::Tensor(int64_t micro, int64_t lead, const at::Tensor& input, const at::Tensor& output)> next_input{};
  std::function<model::ForwardContext(const model::ForwardContext& first, int64_t lead)> context{};
  std::function<void(const at::Tensor& root, const GradientPass& pass)> backward{};
  // zero_bubble: a pass that adds what has waited; without it `compute` is called.
  std::function<void(const std::function<void()>& compute, const GradientPass& pass)> weights{};
};

// Forward passes alone, one micro-batch behind the other, without gradients. Every rank of the pipeline has the same ones.
struct PipelineForward {
  int64_t micros = 0;
  std::function<int64_t(int64_t micro)> samples{};                           // of a micro-batch: B
  std::function<PipelineBatch(int64_t micro)> batch{};                       // called once for each, in their order
  std::function<void(int64_t micro, const at::Tensor& output)> on_output{};  // (B, ...), where the last stage is
};

class PipelineEngine {
 public:
  // `segments` are those of a model that outlives this.
  PipelineEngine(std::vector<model::Segment> segments, Group ranks, PipelineOptions options);

  bool has_output() const;                // whether the model's last stage is here
  bool holds(const ParamRow& row) const;  // whether a stage of this rank does
  // Leaves the parameters of this rank's stages in the table, with the number of the stage among them (ParamRow::chunk), and
  // those that other ranks work with too with their copies' holders, of `tied`.
  void keep_own(ParamTable& table, const std::vector<TiedStages>& tied) const;

  // Called around every forward pass of a stage from now on: the weights of this chunk are whole in between.
  void surround_forward(std::function<void(int64_t chunk)> before, std::function<void()> after);
  // From now on passes with a graph keep what they work on alone, and run again in their backward pass. `weights`: of a chunk.
  void run_stages_again(std::function<std::vector<at::Tensor>(int64_t chunk)> weights) {
    recomputed_weights_ = std::move(weights);
  }

  // Whether a segment of a stage of the model may look at the model's input.
  bool reads_input(int64_t stage) const;

  // Runs the whole model on one sample (1, ...) and remembers what goes over boundaries under the present autocast. Every rank
  // calls it while weights of all stages are there.
  void learn_shapes(const PipelineBatch& sample);
  // The same where each rank has the weights of its own stages alone: they run one after the other and tell the others.
  void learn_shapes_together(const PipelineBatch& sample);

  // Under the present autocast. CommError when a rank does not take part.
  void forward(const PipelineForward& passes) const;
  // Of batches one behind the other: each one's output (B, ...), on every rank.
  std::vector<at::Tensor> forward(const std::vector<PipelineBatch>& batches) const;

  // Gradients of this rank's parameters accumulate. False: no backward pass was told that it is the last, since several stages,
  // or halves of passes, add to them. CommError when a rank does not take part.
  bool run(const PipelineStep& step);

  // The most (stage, micro-batch) whose activations were held at once, since the beginning.
  int64_t most_held() const { return most_held_; }

 private:
  class Step;
  struct Boundary {
    std::vector<int64_t> sizes;  // behind B
    at::ScalarType type;
  };
  using Boundaries = std::vector<std::vector<Boundary>>;  // tensors behind each stage

  int64_t rank_of(int64_t stage) const { return stage % ranks_.size(); }
  int64_t chunk_of(int64_t stage) const { return stage / ranks_.size(); }
  bool stage_holds(int64_t stage, const ParamRow& row) const;
  int64_t num_stages() const { return static_cast<int64_t>(options_.stages.size()); }
  Boundary told_by(int64_t rank, const at::Tensor& tensor) const;
  void hand_over(int64_t stage, model::Tensors& tensors, at::ScalarType matmuls, c10::Device device) const;
  model::Tensors run_stage(int64_t stage, model::Tensors in, const PipelineBatch& batch) const;
  model::Tensors pass_forward(int64_t stage, model::Tensors in, const PipelineBatch& batch) const;
  model::Tensors buffers(int64_t boundary, int64_t samples, at::ScalarType matmuls, c10::Device device) const;
  model::Tensors run_stage_again(int64_t stage, model::Tensors in, const PipelineBatch& batch) const;
  const Schedule& schedule_of(const PipelineStep& step);

  std::vector<model::Segment> segments_;
  Group ranks_;
  PipelineOptions options_;
  std::function<void(int64_t)> before_forward_;
  std::function<void()> after_forward_;
  std::map<at::ScalarType, Boundaries> boundaries_;  // by the type in which matmuls compute
  std::function<std::vector<at::Tensor>(int64_t)> recomputed_weights_;
  std::map<std::pair<int64_t, int64_t>, Schedule> schedules_;  // by micro-batches and leads
  int64_t most_held_ = 0;
};

}  // namespace welkin::parallel
