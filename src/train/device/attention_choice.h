// SPDX-License-Identifier: Apache-2.0
// Chooses the form of attention that torch takes on a GPU (ops/attention/attention_backend.h): the one that the configuration
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

// The attention shape of a forward pass on one rank, with at most four samples. Nothing if the model does not state its
// attention size, or if dropout on the attention weights needs our own tiles.
std::optional<ops::AttentionShape> attention_shape(const config::RunConfig& config,
                                                   const std::optional<model::AttentionSize>& size, int64_t tensor_parallel);

struct AttentionChoice {
  ops::AttentionBackend backend;
  std::string line;  // for the log: the choice and its reason
};

// Returns the configuration's form, with `deterministic` one that repeats bit for bit, else the fastest by `measure`.
// ConfigError if the named form, or every form, cannot run.
AttentionChoice resolve_attention(const config::RunConfig& config, const ops::AttentionShape& shape,
                                  const std::function<std::vector<ops::AttentionTiming>()>& measure);

// Chooses, tells torch and returns the line; nothing on a CPU. Every rank calls it: the first measures for all.
std::string choose_attention(const config::RunConfig& config, const std::optional<model::AttentionSize>& size,
                             int64_t tensor_parallel, c10::Device device, const parallel::Group& world_group);

}  // namespace welkin::train
