// SPDX-License-Identifier: Apache-2.0
// The micro-batches of a step through a pipeline: what the engine does not know of losses, data and the exchange of gradients.
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

// What a backward pass starts from that gives every parameter a gradient of zeros, and reads none.
at::Tensor zero_gradients(const parallel::ParamTable& table) {
  std::vector<at::Tensor> parameters, zeros;
  for (const parallel::ParamRow& row : table.rows()) {
    if (!row.local.requires_grad()) continue;
    parameters.push_back(row.local);
    zeros.push_back(at::zeros({}, row.local.options().requires_grad(false)).expand(row.local.sizes()));
  }
  return parallel::resume_backward(parameters, zeros);
}

}  // namespace

// `batch`: the first micro-batch, and at the end the last.
void EagerStep::pipeline_step(data::Batch& batch, const Source& next, std::vector<int64_t>& samples) {
  const int64_t micro_size = config::batch_plan(config_, setup_.layout.replicas.size()).micro;
  const int64_t of_step = batch.step_samples;
  const int64_t own_micros = batch.input.size(0) > 0 ? batch.num_micro : 0;
  std::vector<data::Batch> under_way(static_cast<size_t>(own_micros));  // until their losses are made
  parallel::PipelineStep step{.micros = micro_steps_of(batch), .autocast = autocast_dtype(config_.precision.amp_mode)};
  step.samples = [=](int64_t micro) { return micro < own_micros ? std::min(micro_size, of_step - micro * micro_size) : 1; };
  step.batch = [&](int64_t micro) -> parallel::PipelineBatch {
    if (micro >= own_micros) return zero_micro_batch(batch, config_.loop.seed, setup_.counter);
    if (micro > 0) batch = fetch(next);
    samples.insert(samples.end(), batch.indices.begin(), batch.indices.end());
    data::Batch own = kept(batch);
    parallel::PipelineBatch given{own.input.contiguous(memory_format(own.input.dim(), channels_last_)),
                                  {.seed = config_.loop.seed, .step = setup_.counter, .sample = own.sample}};
    if (setup_.pipeline->has_output()) under_way[static_cast<size_t>(micro)] = std::move(own);
    return given;
  };
  step.loss = [&](int64_t micro, const at::Tensor& output) {
    if (micro >= own_micros) return output.sum().to(at::kFloat) * 0;
    const data::Batch own = std::exchange(under_way[static_cast<size_t>(micro)], {});
    if (options_.on_forward) options_.on_forward(own, output);
    at::Tensor loss = setup_.layout.shard.losses(*setup_.loss, output, own.target).sum() / samples_of(own);
    at::Tensor scaled = scaled_loss(loss);
    loss_ += loss.detach();
    return scaled;
  };
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
