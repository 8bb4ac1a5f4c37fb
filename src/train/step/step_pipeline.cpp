// SPDX-License-Identifier: Apache-2.0
// The micro-batches of a step through a pipeline: what the engine does not know of losses, data and the exchange of gradients.
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "config/schema/batch_plan.h"
#include "train/learn/precision.h"
#include "train/step/model_setup.h"
#include "train/step/step.h"

namespace welkin::train {
namespace {

// A loader's buffers are valid until the call after next, and several micro-batches are under way.
data::Batch kept(const data::Batch& batch) {
  data::Batch copy = batch;
  copy.input = batch.input.clone();
  copy.target = batch.target.clone();
  copy.sample = batch.sample.clone();
  return copy;
}

}  // namespace

// `batch`: the first micro-batch, and at the end the last.
void EagerStep::pipeline_step(data::Batch& batch, const Source& next, std::vector<int64_t>& samples) {
  const int64_t micro_size = config::batch_plan(config_, setup_.layout.replicas.size()).micro;
  const int64_t of_step = batch.step_samples;
  std::vector<data::Batch> under_way(static_cast<size_t>(batch.num_micro));  // until their losses are made
  parallel::PipelineStep step{.micros = batch.num_micro, .autocast = autocast_dtype(config_.precision.amp_mode)};
  step.samples = [=](int64_t micro) { return std::min(micro_size, of_step - micro * micro_size); };
  step.batch = [&](int64_t micro) -> parallel::PipelineBatch {
    if (micro > 0) batch = fetch(next);
    samples.insert(samples.end(), batch.indices.begin(), batch.indices.end());
    data::Batch own = kept(batch);
    parallel::PipelineBatch given{own.input.contiguous(memory_format(own.input.dim(), channels_last_)),
                                  {.seed = config_.loop.seed, .step = setup_.counter, .sample = own.sample}};
    if (setup_.pipeline->has_output()) under_way[static_cast<size_t>(micro)] = std::move(own);
    return given;
  };
  step.loss = [&](int64_t micro, const at::Tensor& output) {
    const data::Batch own = std::exchange(under_way[static_cast<size_t>(micro)], {});
    if (options_.on_forward) options_.on_forward(own, output);
    const at::Tensor loss = setup_.layout.shard.losses(*setup_.loss, output, own.target).sum() / samples_of(own);
    loss_ += loss.detach();
    return scaled_loss(loss);
  };
  step.backward = [&](const at::Tensor& root, bool is_last) {
    const observe::Span span(options_.tracer, "backward");
    setup_.data_parallel->backward(root, is_last);
  };
  const bool is_exchanged = setup_.pipeline->run(step);
  if (!is_exchanged && setup_.layout.exchange.size() > 1) setup_.data_parallel->backward(nothing_of_all(), /*is_last=*/true);
}

}  // namespace welkin::train
