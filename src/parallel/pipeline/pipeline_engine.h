// SPDX-License-Identifier: Apache-2.0
// Runs this rank's stages of a model: the passes of a step by the table of its schedule, and forward passes alone. It knows no
// loss, no optimizer and no data: the caller provides micro-batches, computes a loss from the output, and runs backward passes.
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
  std::vector<StageRange> stages;          // ranges of segments; rank r has stages r, r + ranks, ...
  std::shared_ptr<WeightQueue> weights{};  // zero_bubble: the queue in which backward passes leave delayed weight gradients
};

struct PipelineBatch {
  at::Tensor input;  // (B, ...) of the whole model; for every stage, which reads the part that it needs
  model::ForwardContext context;
};

// One step. Every rank of the pipeline has the same micro-batches. Leads are steps of the model, each fed with the previous
// prediction; they count from 1.
struct PipelineStep {
  int64_t micros = 0;
  int64_t leads = 1;
  int64_t members = 1;                              // predictions of a sample, which share every pass
  bool only_last = false;                           // only the last lead has a gradient; always equal for one engine
  std::optional<at::ScalarType> autocast{};         // for forward passes and losses
  std::function<int64_t(int64_t micro)> samples{};  // samples of a micro-batch: B
  // Inputs of the first lead, by member; called once for each micro-batch, in order.
  std::function<std::vector<PipelineBatch>(int64_t micro)> batches{};
  // (), for each lead from the outputs of its members, on the last stage's rank. The result of a lead without gradient is not
  // used.
  std::function<at::Tensor(int64_t micro, int64_t lead, const model::Tensors& outputs)> loss{};
  // For several leads. next_input: makes a member's input of the next lead, on the last stage's rank, differentiable in both.
  std::function<at::Tensor(int64_t micro, int64_t lead, const at::Tensor& input, const at::Tensor& output)> next_input{};
  std::function<model::ForwardContext(const model::ForwardContext& first, int64_t lead)> context{};
  std::function<void(const at::Tensor& root, const GradientPass& pass)> backward{};
  // zero_bubble: runs a pass that adds delayed gradients; if empty, `compute` is called directly.
  std::function<void(const std::function<void()>& compute, const GradientPass& pass)> weights{};
};

// Forward passes only, one micro-batch after the other, without gradients. Every rank of the pipeline has the same ones.
struct PipelineForward {
  int64_t micros = 0;
  std::function<int64_t(int64_t micro)> samples{};                           // samples of a micro-batch: B
  std::function<PipelineBatch(int64_t micro)> batch{};                       // called once for each, in order
  std::function<void(int64_t micro, const at::Tensor& output)> on_output{};  // (B, ...), on the last stage's rank
};

class PipelineEngine {
 public:
  // `segments`: of a model that outlives this object.
  PipelineEngine(std::vector<model::Segment> segments, Group ranks, PipelineOptions options);

  bool has_output() const;                // true if the model's last stage is on this rank
  bool holds(const ParamRow& row) const;  // true if a stage of this rank uses the parameter
  // Keeps only the parameters of this rank's stages in the table, each with the number of its stage on this rank
  // (ParamRow::chunk). `tied`: parameters that other ranks use, too, which get the holders of their copies.
  void keep_own(ParamTable& table, const std::vector<TiedStages>& tied) const;

  // From now on calls these around every forward pass of a stage: the weights of this chunk are whole in between.
  void surround_forward(std::function<void(int64_t chunk)> before, std::function<void()> after);
  // From now on passes with a graph keep only their inputs, and are recomputed in their backward pass. `weights`: of a chunk.
  void run_stages_again(std::function<std::vector<at::Tensor>(int64_t chunk)> weights) {
    recomputed_weights_ = std::move(weights);
  }

  // True if a segment of this stage of the model may read the model's input.
  bool reads_input(int64_t stage) const;

  // Runs the whole model on one sample (1, ...) and stores the shapes between stages under the current autocast. Every rank
  // calls it while the weights of all stages are present.
  void learn_shapes(const PipelineBatch& sample);
  // The same if each rank has only the weights of its own stages: they run one after the other and send each other the shapes.
  void learn_shapes_together(const PipelineBatch& sample);

  // Runs under the current autocast. CommError when a rank does not take part.
  void forward(const PipelineForward& passes) const;
  // The output (B, ...) of each of several batches, on every rank.
  std::vector<at::Tensor> forward(const std::vector<PipelineBatch>& batches) const;

  // Accumulates gradients of this rank's parameters. False: no backward pass was marked as the last, since several stages, or
  // halves of passes, add to them. CommError when a rank does not take part.
  bool run(const PipelineStep& step);

  // The largest number of (stage, micro-batch) whose activations were held at once so far.
  int64_t most_held() const { return most_held_; }

 private:
  class Step;
  struct Boundary {
    std::vector<int64_t> sizes;  // without B
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
  std::map<at::ScalarType, Boundaries> boundaries_;  // by the type of matmuls
  std::function<std::vector<at::Tensor>(int64_t)> recomputed_weights_;
  std::map<std::pair<int64_t, int64_t>, Schedule> schedules_;  // by numbers of micro-batches and leads
  int64_t most_held_ = 0;
};

}  // namespace welkin::parallel
