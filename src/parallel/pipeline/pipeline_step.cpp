// SPDX-License-Identifier: Apache-2.0
// The passes of one training step on this rank, by its row of the table.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "ops/base/autocast.h"
#include "parallel/pipeline/pipeline_engine.h"
#include "parallel/pipeline/resume_backward.h"
#include "parallel/pipeline/stage_messages.h"

namespace welkin::parallel {
namespace {

using model::Tensors;

at::Tensor gradient_of(const at::Tensor& leaf) { return leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf); }

}  // namespace

class PipelineEngine::Step {
 public:
  Step(PipelineEngine& engine, const PipelineStep& step, const Schedule& schedule)
      : engine_(engine),
        step_(step),
        schedule_(schedule),
        shape_(schedule.shape),
        batches_(static_cast<size_t>(step.micros)),
        messages_(schedule, engine.ranks_, [this](int64_t boundary, int64_t micro) { return buffers(boundary, micro); }) {}

  bool run() {
    const std::vector<Pass>& row = schedule_.rows[static_cast<size_t>(engine_.ranks_.group_rank())];
    const bool has_last = shape_.chunks == 1 && row.back().kind == PassKind::Backward;
    form_ = form_of(fetch(0).front().input);
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].kind == PassKind::Forward) {
        forward(row[i]);
        continue;
      }
      GradientPass of_gradients = gradient_pass(row, i);
      of_gradients.ends_step = has_last && i + 1 == row.size();
      row[i].kind == PassKind::BackwardWeight ? weights_of(row[i], of_gradients) : backward(row[i], of_gradients);
    }
    messages_.finish();
    return has_last;
  }

 private:
  struct Fetched {
    std::vector<PipelineBatch> batches;  // by member
    bool is_there = false;
    int64_t passes = 0;  // finished passes of this rank's stages
  };
  // Form of all micro-batches: type and sizes, without the number of samples.
  struct Form {
    std::vector<int64_t> sizes;
    at::TensorOptions options;
    at::MemoryFormat memory = at::MemoryFormat::Contiguous;
  };
  static Form form_of(const at::Tensor& input) {
    return {input.sizes().vec(), input.options().requires_grad(false), input.suggest_memory_format()};
  }

  struct Saved {
    // Leaves of all members: received tensors, or for a first stage the inputs that the previous lead has made. The output of a
    // last stage is the loss, undefined if it is not scored.
    Tensors inputs, outputs;
    Tensors next, fed;  // last stage, by member: inputs of the next lead, and the leaves as which this rank uses them
  };
  using Place = std::pair<int64_t, int64_t>;  // stage of the chain, micro-batch

  bool is_first(int64_t stage) const { return shape_.of_model(stage) == 0; }
  bool is_last(int64_t stage) const { return shape_.of_model(stage) + 1 == shape_.stages(); }
  bool has_gradient(int64_t stage) const { return stage >= shape_.first_with_gradient(); }
  // True if a backward pass continues over the boundary before the stage.
  bool sends_back(int64_t stage) const { return stage > shape_.first_with_gradient(); }

  GradientPass gradient_pass(const std::vector<Pass>& row, size_t place) const {
    const int64_t chunk = shape_.chunk_of(row[place].stage);
    const auto adds_too = [this, chunk](const Pass& pass) {
      return shape_.chunk_of(pass.stage) == chunk && pass.kind != PassKind::Forward;
    };
    return {.chunk = chunk,
            .ends_chunk = std::none_of(row.begin() + static_cast<std::ptrdiff_t>(place) + 1, row.end(), adds_too),
            .ends_step = false,
            .weights_wait = row[place].kind == PassKind::BackwardInput};
  }

  Tensors buffers(int64_t boundary, int64_t micro) const {
    Tensors all;
    for (int64_t member = 0; member < step_.members; ++member)
      std::ranges::move(buffers_of_member(boundary, micro), std::back_inserter(all));
    return all;
  }

  // Buffers behind a lead's last stage: the next lead's input, which has the same form for all leads.
  Tensors buffers_of_member(int64_t boundary, int64_t micro) const {
    const int64_t samples = step_.samples(micro);
    if (!is_last(boundary)) {
      return engine_.buffers(shape_.of_model(boundary), samples, step_.autocast.value_or(at::kFloat), form_.options.device());
    }
    std::vector<int64_t> sizes = form_.sizes;
    sizes.front() = samples;
    return {at::empty(sizes, form_.options)};
  }

  const std::vector<PipelineBatch>& fetch(int64_t micro) {
    Fetched& fetched = batches_[static_cast<size_t>(micro)];
    if (!std::exchange(fetched.is_there, true)) fetched.batches = step_.batches(micro);
    return fetched.batches;
  }

  // Tensors received over the boundary before the stage, as leaves of a new graph.
  Tensors receive(const Pass& pass) {
    if (pass.stage == 0) return {};
    Tensors leaves;
    for (const at::Tensor& tensor : messages_.receive({pass.stage - 1, pass.micro, false})) {
      const at::Tensor formed = is_first(pass.stage) ? tensor.contiguous(form_.memory) : tensor;
      leaves.push_back(formed.detach().requires_grad_(sends_back(pass.stage)));
    }
    return leaves;
  }

  // Batches of this lead, by member: only the first and the last stage have its input.
  std::vector<PipelineBatch> batches_of(const Pass& pass, const Saved& saved) {
    std::vector<PipelineBatch> batches = fetch(pass.micro);
    const int64_t lead = shape_.lead_of(pass.stage);
    if (lead == 1) return batches;
    Tensors inputs;
    if (is_first(pass.stage)) inputs = saved.inputs;
    if (is_last(pass.stage)) inputs = std::exchange(fed_[pass.micro], {});
    for (size_t member = 0; member < batches.size(); ++member) {
      PipelineBatch& batch = batches[member];
      batch.context = step_.context(batch.context, lead);
      batch.input = inputs.empty() ? at::Tensor() : at::alias(inputs.at(member));  // autocast would cache the cast of a leaf
    }
    return batches;
  }

  // Outputs of all members, one after the other. Each casts the weights anew: the gradients of a shared cast would be summed in
  // the low type.
  Tensors outputs_of(const Pass& pass, const std::vector<PipelineBatch>& batches, const Saved& saved) const {
    const size_t of_member = is_first(pass.stage) ? 0 : saved.inputs.size() / batches.size();
    Tensors outputs;
    auto input = saved.inputs.begin();
    for (const PipelineBatch& batch : batches) {
      const ops::AutocastGuard autocast(form_.options.device().type(), step_.autocast);
      const auto end = input + static_cast<std::ptrdiff_t>(of_member);
      std::ranges::move(engine_.pass_forward(shape_.of_model(pass.stage), {input, end}, batch), std::back_inserter(outputs));
      input = end;
    }
    return outputs;
  }

  void forward(const Pass& pass) {
    Saved saved;
    saved.inputs = receive(pass);
    const std::vector<PipelineBatch> batches = batches_of(pass, saved);
    {
      const at::AutoGradMode with_graph(at::GradMode::is_enabled() && has_gradient(pass.stage));
      saved.outputs = outputs_of(pass, batches, saved);
      is_last(pass.stage) ? end_lead(pass, batches, saved) : messages_.send({pass.stage, pass.micro, false}, saved.outputs);
    }
    if (has_gradient(pass.stage)) saved_.emplace(Place(pass.stage, pass.micro), std::move(saved));
    engine_.most_held_ = std::max(engine_.most_held_, static_cast<int64_t>(saved_.size() + waiting_.size()));
    Fetched& fetched = batches_[static_cast<size_t>(pass.micro)];
    if (++fetched.passes == shape_.leads * shape_.chunks) fetched.batches = {};
  }

  // Computes the loss, and the inputs of the next lead for the first stage and for this one.
  void end_lead(const Pass& pass, const std::vector<PipelineBatch>& batches, Saved& saved) {
    const ops::AutocastGuard autocast(form_.options.device().type(), step_.autocast);
    const int64_t lead = shape_.lead_of(pass.stage);
    const Tensors outputs = std::exchange(saved.outputs, {});
    saved.outputs = {step_.loss(pass.micro, lead, outputs)};
    if (lead == shape_.leads) return;
    for (size_t member = 0; member < batches.size(); ++member) {
      saved.next.push_back(step_.next_input(pass.micro, lead, batches[member].input, outputs.at(member)));
      saved.fed.push_back(saved.next.back().detach().requires_grad_(has_gradient(pass.stage)));
    }
    messages_.send({pass.stage, pass.micro, false}, saved.next);
    fed_[pass.micro] = saved.fed;
  }

  void backward(const Pass& pass, const GradientPass& of_gradients) {
    const auto place = saved_.find({pass.stage, pass.micro});
    const Saved saved = std::move(place->second);
    saved_.erase(place);
    const at::Tensor root = root_of(pass, saved);
    if (root.requires_grad()) step_.backward(root, of_gradients);  // otherwise this stage and all before it are frozen
    if (pass.kind == PassKind::BackwardInput) {
      waiting_.emplace(Place(pass.stage, pass.micro), std::exchange(engine_.options_.weights->now, {}));
    }
    if (!sends_back(pass.stage)) return;
    Tensors gradients;
    for (const at::Tensor& input : saved.inputs) gradients.push_back(gradient_of(input));
    messages_.send({pass.stage - 1, pass.micro, true}, gradients);
  }

  void weights_of(const Pass& pass, const GradientPass& of_gradients) {
    const auto place = waiting_.find({pass.stage, pass.micro});
    const auto compute = [&waiting = place->second] { waiting.compute(); };
    step_.weights ? step_.weights(compute, of_gradients) : compute();
    waiting_.erase(place);
  }

  // The root of this stage's backward pass.
  at::Tensor root_of(const Pass& pass, const Saved& saved) {
    if (pass.stage + 1 == shape_.chain()) return saved.outputs.at(0);
    const Tensors gradients = messages_.receive({pass.stage, pass.micro, true});
    if (!is_last(pass.stage)) return resume_backward(saved.outputs, gradients);
    Tensors of_next;
    for (size_t member = 0; member < saved.fed.size(); ++member) {
      const at::Tensor& own = saved.fed[member].grad();
      of_next.push_back(own.defined() ? gradients.at(member) + own : gradients.at(member));
    }
    return saved.outputs.at(0) + resume_backward(saved.next, of_next);
  }

  PipelineEngine& engine_;
  const PipelineStep& step_;
  const Schedule& schedule_;
  const PipelineShape& shape_;
  Form form_;  // of the model's input
  std::vector<Fetched> batches_;
  StageMessages messages_;
  std::map<int64_t, Tensors> fed_;            // by micro-batch: inputs of its next lead, on the last stage's rank
  std::map<Place, Saved> saved_;              // between forward and backward pass
  std::map<Place, WeightGradients> waiting_;  // after half of a backward pass
};

const Schedule& PipelineEngine::schedule_of(const PipelineStep& step) {
  const PipelineShape shape{.ranks = ranks_.size(),
                            .micros = step.micros,
                            .chunks = options_.chunks,
                            .leads = step.leads,
                            .only_last = step.only_last && step.leads > 1};
  const auto known = schedules_.find({step.micros, step.leads});
  if (known != schedules_.end()) return known->second;
  return schedules_.emplace(std::pair(step.micros, step.leads), schedule_of_short_step(options_.schedule, shape)).first->second;
}

bool PipelineEngine::run(const PipelineStep& step) { return Step(*this, step, schedule_of(step)).run(); }

}  // namespace welkin::parallel
