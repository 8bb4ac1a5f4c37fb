// SPDX-License-Identifier: Apache-2.0
// The micro-batches of a step through a pipeline: the losses, data and exchange of gradients, which the engine does not know.
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "config/schema/batch_plan.h"
#include "parallel/pipeline/resume_backward.h"
#include "train/learn/precision.h"
#include "train/step/model_setup.h"
#include "train/step/stages.h"
#include "train/step/step.h"

namespace welkin::train {
namespace {

// A root whose backward pass gives every parameter a gradient of zeros, and reads none.
at::Tensor zero_gradients(const parallel::ParamTable& table) {
  std::vector<at::Tensor> parameters, zeros;
  for (const parallel::ParamRow& row : table.rows()) {
    if (!row.local.requires_grad()) continue;
    parameters.push_back(row.local);
    zeros.push_back(at::zeros({}, row.local.options().requires_grad(false)).expand(row.local.sizes()));
  }
  return parallel::resume_backward(parameters, zeros);
}

// (), zero, with a gradient of zeros for the inputs of these outputs.
at::Tensor nothing_of(const std::vector<at::Tensor>& outputs) {
  at::Tensor sum = outputs.front().sum();
  for (size_t i = 1; i < outputs.size(); ++i) sum = sum + outputs[i].sum();
  return sum.to(at::kFloat) * 0;
}

}  // namespace

// The first stage's inputs of samples with any number of steps, by member.
std::vector<parallel::PipelineBatch> EagerStep::first_lead(const data::Batch& batch, bool with_noise) const {
  const model::ForwardContext context{.seed = config_.loop.seed, .step = setup_.counter, .sample = batch.sample};
  const at::Tensor input = batch.input.contiguous(memory_format(batch.input.dim(), channels_last_));
  if (!setup_.rollout) return {{input, context}};
  const TrainingRollout& rollout = *setup_.rollout;
  std::vector<parallel::PipelineBatch> members;
  for (int64_t member = 0; member < rollout.members(); ++member) {
    const model::ForwardContext own = TrainingRollout::context_of_member(context, member);
    members.push_back({with_noise ? rollout.start(input, batch.target, own)
                                  : rollout.first_input(input).contiguous(input.suggest_memory_format()),
                       own});
  }
  return members;
}

// The scaled loss of one lead of the micro-batch; undefined if the lead is not scored. `outputs` are those of all members; the
// first one is shown.
at::Tensor EagerStep::lead_loss(const data::Batch& batch, int64_t lead, int64_t leads, const std::vector<at::Tensor>& outputs) {
  if (lead == 1 && options_.on_forward) show_forward(batch, outputs.front());
  const bool only_last = setup_.rollout && setup_.rollout->only_last();
  if (only_last && lead < leads) return {};
  const at::Tensor target = setup_.rollout ? setup_.rollout->target_of(batch.target, lead) : batch.target;
  const auto losses_of_one = [this](const at::Tensor& output, const at::Tensor& truth) {
    return setup_.layout.shard.losses(*setup_.loss, output, truth);
  };
  at::Tensor loss = TrainingRollout::score(outputs, target, losses_of_one).sum() / samples_of(batch);
  if (leads > 1 && !only_last) loss = loss / leads;
  at::Tensor scaled = scaled_loss(loss);
  loss_ += loss.detach();
  return scaled;
}

// `batch` is the first micro-batch, and at the end the last one. A rank with fewer micro-batches than others makes up the rest
// with zeros, which count nowhere.
void EagerStep::pipeline_step(data::Batch& batch, const Source& next, std::vector<int64_t>& samples) {
  const int64_t micro_size = config::batch_plan(config_, setup_.layout.replicas.size()).micro;
  const int64_t of_step = batch.step_samples;
  const int64_t own_micros = batch.input.size(0) > 0 ? batch.num_micro : 0;
  const TrainingRollout* rollout = setup_.rollout.get();
  parallel::PipelineStep step{.micros = micro_steps_of(batch),
                              .leads = rollout != nullptr ? rollout->steps_of(batch.target) : 1,
                              .members = rollout != nullptr ? rollout->members() : 1,
                              .only_last = rollout != nullptr && rollout->only_last(),
                              .autocast = autocast_dtype(config_.precision.amp_mode)};
  std::vector<data::Batch> under_way(static_cast<size_t>(step.micros));  // on the last stage, until the last loss is made
  const auto of_micro = [&](int64_t micro) -> data::Batch& { return under_way[static_cast<size_t>(micro)]; };
  step.samples = [=](int64_t micro) { return micro < own_micros ? std::min(micro_size, of_step - micro * micro_size) : 1; };
  step.batches = [&](int64_t micro) {
    const bool is_own = micro < own_micros;
    if (is_own && micro > 0) batch = fetch(next);
    if (is_own) samples.insert(samples.end(), batch.indices.begin(), batch.indices.end());
    data::Batch own = is_own ? kept(batch) : zero_batch(batch, setup_.counter);
    std::vector<parallel::PipelineBatch> given = first_lead(own, is_own);
    if (setup_.pipeline->has_output()) of_micro(micro) = std::move(own);
    return given;
  };
  step.loss = [&](int64_t micro, int64_t lead, const std::vector<at::Tensor>& outputs) {
    at::Tensor loss = micro < own_micros ? lead_loss(of_micro(micro), lead, step.leads, outputs) : nothing_of(outputs);
    if (lead == step.leads) of_micro(micro) = {};
    return loss;
  };
  step.next_input = [&](int64_t micro, int64_t lead, const at::Tensor& input, const at::Tensor& output) {
    return rollout->next(input, output, of_micro(micro).input, of_micro(micro).target, lead);
  };
  step.context = TrainingRollout::context_of;
  step.backward = [&](const at::Tensor& root, const parallel::GradientPass& pass) {
    const observe::Span span(options_.tracer, "backward");
    setup_.data_parallel->backward_chunk(root, pass);
  };
  step.weights = [&](const std::function<void()>& compute, const parallel::GradientPass& pass) {
    const observe::Span span(options_.tracer, "backward");
    setup_.data_parallel->weights_of_chunk(compute, pass);
  };
  const bool is_exchanged = setup_.pipeline->run(step) || setup_.data_parallel->joins_every_backward();
  if (is_exchanged || setup_.layout.exchange.size() == 1) return;
  setup_.data_parallel->backward(zero_gradients(setup_.table), /*is_last=*/true);
}

}  // namespace welkin::train
