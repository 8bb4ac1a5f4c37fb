// SPDX-License-Identifier: Apache-2.0
#include "train/device/attention_choice.h"

#include <ATen/ops/full.h>

#include <algorithm>

#include "config/schema/batch_plan.h"
#include "core/error.h"
#include "core/text.h"
#include "ops/base/device_timer.h"
#include "parallel/comm/collectives.h"
#include "train/learn/precision.h"

namespace welkin::train {
namespace {

using ops::AttentionBackend;

std::optional<AttentionBackend> named_backend(config::AttentionForm form) {
  switch (form) {
    case config::AttentionForm::Flash:
      return AttentionBackend::Flash;
    case config::AttentionForm::MemoryEfficient:
      return AttentionBackend::MemoryEfficient;
    case config::AttentionForm::CuDnn:
      return AttentionBackend::CuDnn;
    case config::AttentionForm::Math:
      return AttentionBackend::Math;
    case config::AttentionForm::Auto:
      break;
  }
  return std::nullopt;
}

std::string shape_text(const ops::AttentionShape& shape) {
  return cat("batch ", shape.batch, ", ", shape.heads, " heads of ", shape.head_dim, ", ", shape.tokens, " tokens");
}

bool can_run(const std::vector<ops::AttentionTiming>& timings, AttentionBackend backend) {
  return std::any_of(timings.begin(), timings.end(),
                     [&](const ops::AttentionTiming& t) { return t.backend == backend && (t.seconds || t.is_too_large); });
}

// Flash attention adds in an order that repeats; the plain form consists of matmuls, which repeat too.
AttentionBackend repeatable(at::ScalarType dtype) {
  return dtype == at::kFloat ? AttentionBackend::Math : AttentionBackend::Flash;
}

}  // namespace

std::optional<ops::AttentionShape> attention_shape(const config::RunConfig& config,
                                                   const std::optional<model::AttentionSize>& size, int64_t tensor_parallel) {
  if (!size || config.model.dropout > 0) return std::nullopt;
  constexpr int64_t kMostSamples = 4;
  return ops::AttentionShape{.batch = std::min(config::batch_plan(config).micro, kMostSamples),
                             .heads = std::max<int64_t>(1, size->heads / tensor_parallel),
                             .tokens = size->tokens,
                             .head_dim = size->head_dim,
                             .dtype = autocast_dtype(config.precision.amp_mode).value_or(at::kFloat)};
}

AttentionChoice resolve_attention(const config::RunConfig& config, const ops::AttentionShape& shape,
                                  const std::function<std::vector<ops::AttentionTiming>()>& measure) {
  const auto named = named_backend(config.backend.attention);
  if (!named && config.loop.deterministic) {
    const AttentionBackend backend = repeatable(shape.dtype);
    return {backend, cat("Attention: ", name_of(backend), " (deterministic)")};
  }
  const std::vector<ops::AttentionTiming> timings = measure();
  if (named && !can_run(timings, *named)) {
    throw ConfigError("train",
                      cat("this form of attention cannot run here: attention=", name_of(*named), ", ", shape_text(shape), "; ",
                          text_of(timings)),
                      "Take one that can, or --attention auto");
  }
  if (named)
    return {*named, cat("Attention: ", name_of(*named), " (as asked for; ", shape_text(shape), ": ", text_of(timings), ")")};
  const auto best = ops::fastest(timings);
  if (!best) {
    throw ConfigError("train", cat("no form of attention can run here: ", shape_text(shape)),
                      "Take a smaller batch, or larger patches");
  }
  return {*best, cat("Attention: ", name_of(*best), " (", shape_text(shape), ": ", text_of(timings), ")")};
}

std::string choose_attention(const config::RunConfig& config, const std::optional<model::AttentionSize>& size,
                             int64_t tensor_parallel, c10::Device device, const parallel::Group& world_group) {
  if (!device.is_cuda()) return {};
  const auto shape = attention_shape(config, size, tensor_parallel);
  if (!shape) {
    if (const auto named = named_backend(config.backend.attention)) ops::set_attention_backend(*named);
    return {};
  }
  const auto measure = [&] {
    return ops::time_attention(*shape, device, [&](const std::function<void()>& work, int repeats) {
      return ops::seconds_on_device(device, work, repeats);
    });
  };
  AttentionChoice choice{.backend = AttentionBackend::Math, .line = {}};
  if (world_group.group_rank() == 0) choice = resolve_attention(config, *shape, measure);
  const at::Tensor taken = at::full({1}, static_cast<int64_t>(choice.backend), at::kLong);
  parallel::broadcast(world_group, taken, 0);
  ops::set_attention_backend(static_cast<AttentionBackend>(taken.item<int64_t>()));
  return choice.line;
}

}  // namespace welkin::train
