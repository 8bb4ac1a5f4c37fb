// SPDX-License-Identifier: Apache-2.0
// Which of torch's forms of attention a run on a GPU takes (ops/attention/attention_backend.h): the one that the configuration
// names, or the fastest at the model's shape.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "model/registry.h"
#include "ops/attention/attention_backend.h"
#include "parallel/comm/group.h"

namespace welkin::train {

// Of a forward pass on one rank, the batch cut to four samples; nothing where the model does not say how large its attention is,
// and where dropout on its weights takes tiles of our own.
std::optional<ops::AttentionShape> attention_shape(const config::RunConfig& config,
                                                   const std::optional<model::AttentionSize>& size, int64_t tensor_parallel);

struct AttentionChoice {
  ops::AttentionBackend backend;
  std::string line;  // for the log: what was taken, and why
};

// The configuration's, the one that repeats bit for bit where it is `deterministic`, else the fastest of `measure`. ConfigError
// where the named one, or any, cannot run.
AttentionChoice resolve_attention(const config::RunConfig& config, const ops::AttentionShape& shape,
                                  const std::function<std::vector<ops::AttentionTiming>()>& measure);

// Chooses, tells torch and returns the line; nothing on a CPU. Every rank calls it: the first measures for all.
std::string choose_attention(const config::RunConfig& config, const std::optional<model::AttentionSize>& size,
                             int64_t tensor_parallel, c10::Device device, const parallel::Group& world_group);

}  // namespace welkin::train
