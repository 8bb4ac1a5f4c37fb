// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/pipeline_engine.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"
#include "ops/base/autocast.h"
#include "ops/base/recompute.h"
#include "parallel/pipeline/stage_messages.h"

namespace welkin::parallel {
namespace {

using model::Tensors;

// The type in which float32 matmuls currently compute.
at::ScalarType matmul_type(c10::Device device) {
  return ops::operand_type(at::empty({0}, at::TensorOptions(at::kFloat).device(device)), ops::OperatorClass::Matmul);
}

}  // namespace

PipelineEngine::PipelineEngine(std::vector<model::Segment> segments, Group ranks, PipelineOptions options)
    : segments_(std::move(segments)), ranks_(std::move(ranks)), options_(std::move(options)) {
  WELKIN_CHECK(options_.schedule != config::PipelineSchedule::ZeroBubble || options_.weights, "halves of passes need a queue");
  WELKIN_CHECK(num_stages() == ranks_.size() * options_.chunks, "a pipeline has a stage for every chunk of every rank");
}

bool PipelineEngine::has_output() const { return rank_of(num_stages() - 1) == ranks_.group_rank(); }

bool PipelineEngine::stage_holds(int64_t stage, const ParamRow& row) const {
  const StageRange& range = options_.stages[static_cast<size_t>(stage)];
  return std::any_of(segments_.begin() + range.begin, segments_.begin() + range.end,
                     [&](const model::Segment& segment) { return row.is_held_by(segment); });
}

bool PipelineEngine::holds(const ParamRow& row) const {
  for (int64_t stage = ranks_.group_rank(); stage < num_stages(); stage += ranks_.size()) {
    if (stage_holds(stage, row)) return true;
  }
  return false;
}

// A row used by several stages of this rank belongs to the first of them: its backward passes are the last.
void PipelineEngine::keep_own(ParamTable& table, const std::vector<TiedStages>& tied) const {
  table.keep([this](const ParamRow& row) { return holds(row); });
  for (ParamRow& row : table.rows()) {
    std::vector<int64_t> chunks;
    for (int64_t stage = ranks_.group_rank(); stage < num_stages(); stage += ranks_.size()) {
      if (stage_holds(stage, row)) chunks.push_back(chunk_of(stage));
    }
    row.chunk = chunks.front();
    row.other_chunks.assign(chunks.begin() + 1, chunks.end());
  }
  for (const TiedStages& stages : tied) {
    for (const std::string& name : stages.parameters) table.at(name).holders = stages.ranks;
  }
}

Tensors PipelineEngine::run_stage(int64_t stage, Tensors in, const PipelineBatch& batch) const {
  const StageRange& range = options_.stages[static_cast<size_t>(stage)];
  for (int64_t i = range.begin; i < range.end; ++i) {
    in = segments_[static_cast<size_t>(i)].run(std::move(in), batch.input, batch.context);
  }
  return in;
}

// One forward pass of the schedule, for which weights may have to be fetched.
Tensors PipelineEngine::pass_forward(int64_t stage, Tensors in, const PipelineBatch& batch) const {
  if (before_forward_) before_forward_(chunk_of(stage));
  Tensors out = recomputed_weights_ && at::GradMode::is_enabled() ? run_stage_again(stage, std::move(in), batch)
                                                                  : run_stage(stage, std::move(in), batch);
  if (after_forward_) after_forward_();
  return out;
}

// The model's input is one of the recomputed part's inputs if the stage reads it.
Tensors PipelineEngine::run_stage_again(int64_t stage, Tensors in, const PipelineBatch& batch) const {
  const bool has_input = batch.input.defined() && reads_input(stage);
  if (has_input) in.push_back(batch.input);
  const auto again = [this, stage, has_input, context = batch.context](Tensors of_part) {
    PipelineBatch own{.input = {}, .context = context};
    if (has_input) {
      own.input = of_part.back();
      of_part.pop_back();
    }
    return run_stage(stage, std::move(of_part), own);
  };
  return ops::recomputed(again, in, recomputed_weights_(chunk_of(stage)));
}

bool PipelineEngine::reads_input(int64_t stage) const {
  const StageRange& range = options_.stages[static_cast<size_t>(stage)];
  return std::any_of(segments_.begin() + range.begin, segments_.begin() + range.end,
                     [](const model::Segment& segment) { return segment.reads_input; });
}

void PipelineEngine::surround_forward(std::function<void(int64_t)> before, std::function<void()> after) {
  before_forward_ = std::move(before);
  after_forward_ = std::move(after);
}

void PipelineEngine::learn_shapes(const PipelineBatch& sample) {
  const at::NoGradGuard no_grad;
  Boundaries boundaries;
  Tensors tensors;
  for (int64_t stage = 0; stage < num_stages(); ++stage) {
    tensors = run_stage(stage, std::move(tensors), sample);
    boundaries.emplace_back();
    for (const at::Tensor& tensor : tensors) {
      boundaries.back().push_back({{tensor.sizes().begin() + 1, tensor.sizes().end()}, tensor.scalar_type()});
    }
  }
  boundaries_[matmul_type(sample.input.device())] = std::move(boundaries);
}

// Sends type and sizes (without B) of a tensor from one rank to all.
PipelineEngine::Boundary PipelineEngine::told_by(int64_t rank, const at::Tensor& tensor) const {
  const bool is_own = rank == ranks_.group_rank();
  const at::TensorOptions whole_numbers(at::kLong);
  const at::Tensor facts = at::zeros({2}, whole_numbers);
  if (is_own) facts[0] = tensor.dim() - 1;
  if (is_own) facts[1] = static_cast<int64_t>(tensor.scalar_type());
  broadcast(ranks_, facts, rank);
  const at::Tensor sizes = at::zeros({facts[0].item<int64_t>()}, whole_numbers);
  for (int64_t dim = 0; is_own && dim < sizes.numel(); ++dim) sizes[dim] = tensor.size(dim + 1);
  if (sizes.numel() > 0) broadcast(ranks_, sizes, rank);
  const auto* begin = sizes.const_data_ptr<int64_t>();
  return {{begin, begin + sizes.numel()}, static_cast<at::ScalarType>(facts[1].item<int64_t>())};
}

// Sends tensors from this stage's rank to that of the next stage.
void PipelineEngine::hand_over(int64_t stage, Tensors& tensors, at::ScalarType matmuls, c10::Device device) const {
  const int64_t from = rank_of(stage), to = rank_of(stage + 1);
  if (from == to) return;
  std::vector<Transfer> transfers;
  std::vector<at::Tensor> kept;
  if (to == ranks_.group_rank()) tensors = buffers(stage, 1, matmuls, device);
  for (const at::Tensor& tensor : tensors) {
    if (from == ranks_.group_rank()) transfers.push_back(start_send(ranks_, kept.emplace_back(tensor.contiguous()), to));
    if (to == ranks_.group_rank()) transfers.push_back(start_receive(ranks_, tensor, from));
  }
  for (Transfer& transfer : transfers) transfer.wait();
}

void PipelineEngine::learn_shapes_together(const PipelineBatch& sample) {
  const at::NoGradGuard no_grad;
  const c10::Device device = sample.input.device();
  const at::ScalarType matmuls = matmul_type(device);
  Boundaries& boundaries = boundaries_[matmuls] = {};
  Tensors tensors;
  for (int64_t stage = 0; stage < num_stages(); ++stage) {
    const int64_t rank = rank_of(stage);
    const bool is_own = rank == ranks_.group_rank();
    if (is_own) tensors = run_stage(stage, std::move(tensors), sample);
    const at::Tensor count = at::full({1}, is_own ? static_cast<int64_t>(tensors.size()) : 0, at::kLong);
    broadcast(ranks_, count, rank);
    std::vector<Boundary>& boundary = boundaries.emplace_back();
    for (int64_t i = 0; i < count.item<int64_t>(); ++i) {
      boundary.push_back(told_by(rank, is_own ? tensors[static_cast<size_t>(i)] : at::Tensor()));
    }
    if (stage + 1 < num_stages()) hand_over(stage, tensors, matmuls, device);
  }
}

Tensors PipelineEngine::buffers(int64_t boundary, int64_t samples, at::ScalarType matmuls, c10::Device device) const {
  const auto known = boundaries_.find(matmuls);
  WELKIN_CHECK(known != boundaries_.end(), "the boundaries of a pipeline are known for this autocast");
  Tensors tensors;
  for (const Boundary& one : known->second.at(static_cast<size_t>(boundary))) {
    std::vector<int64_t> sizes{samples};
    sizes.insert(sizes.end(), one.sizes.begin(), one.sizes.end());
    tensors.push_back(at::empty(sizes, at::TensorOptions(one.type).device(device)));
  }
  return tensors;
}

void PipelineEngine::forward(const PipelineForward& passes) const {
  const at::NoGradGuard no_grad;
  const Schedule schedule = make_forward_schedule({.ranks = ranks_.size(), .micros = passes.micros, .chunks = options_.chunks});
  std::vector<PipelineBatch> batches(static_cast<size_t>(passes.micros));
  c10::Device device = c10::kCPU;
  StageMessages messages(schedule, ranks_, [&](int64_t boundary, int64_t micro) {
    return buffers(boundary, passes.samples(micro), matmul_type(device), device);
  });
  for (const Pass& pass : schedule.rows[static_cast<size_t>(ranks_.group_rank())]) {
    PipelineBatch& batch = batches[static_cast<size_t>(pass.micro)];
    if (pass.stage < ranks_.size()) batch = passes.batch(pass.micro);
    device = batch.input.device();
    Tensors tensors;
    if (pass.stage > 0) tensors = messages.receive({pass.stage - 1, pass.micro, false});
    tensors = pass_forward(pass.stage, std::move(tensors), batch);
    const bool is_last_stage = pass.stage + 1 == num_stages();
    is_last_stage ? passes.on_output(pass.micro, tensors.at(0)) : messages.send({pass.stage, pass.micro, false}, tensors);
    if (pass.stage + ranks_.size() >= num_stages()) batch = {};
  }
  messages.finish();
}

std::vector<at::Tensor> PipelineEngine::forward(const std::vector<PipelineBatch>& batches) const {
  const at::NoGradGuard no_grad;
  const auto batch = [&batches](int64_t micro) -> const PipelineBatch& { return batches[static_cast<size_t>(micro)]; };
  std::vector<at::Tensor> outputs(batches.size());
  forward(PipelineForward{
      .micros = static_cast<int64_t>(batches.size()),
      .samples = [&](int64_t micro) { return batch(micro).input.size(0); },
      .batch = batch,
      .on_output = [&](int64_t micro, const at::Tensor& made) { outputs[static_cast<size_t>(micro)] = made.contiguous(); }});
  const c10::Device device = batches.front().input.device();
  for (size_t micro = 0; micro < outputs.size(); ++micro) {
    at::Tensor& output = outputs[micro];
    if (!output.defined()) output = buffers(num_stages() - 1, batches[micro].input.size(0), matmul_type(device), device).at(0);
    broadcast(ranks_, output, rank_of(num_stages() - 1));
  }
  return outputs;
}

}  // namespace welkin::parallel
