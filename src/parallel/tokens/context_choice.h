// SPDX-License-Identifier: Apache-2.0
// context_mode auto: which of the three exchanges of context_attention.h costs least, by arithmetic alone, so that every rank,
// and a run that is resumed, choose the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "config/schema/run_config.h"
#include "model/registry.h"
#include "parallel/mesh/mesh.h"
#include "parallel/tokens/context_attention.h"

namespace welkin::parallel {

// Attention of one block on one rank of tp, whole over cp, and what it runs on.
struct ContextWork {
  int64_t batch = 1;  // samples of a forward pass
  int64_t tokens = 0;
  int64_t heads = 0;  // of this rank of tp
  int64_t head_dim = 0;
  int64_t value_bytes = 4;  // of q, k and v as they travel
  int64_t ranks = 1;        // of cp
};

struct ContextRates {
  double flops_per_second = 0;  // of attention on one rank
  double bytes_per_second = 0;  // a rank sends, and receives beside it
  double latency_s = 0;         // of a message
};

// Typical of the device. Orders of magnitude decide: the modes differ by factors.
ContextRates typical_rates(bool is_gpu, int64_t value_bytes);

// Seconds that forward and backward pass of a block wait for an exchange; nothing where the mode is impossible. A ring waits only
// for what its matmuls do not hide.
std::optional<double> exposed_seconds(ContextMode mode, const ContextWork& work, const ContextRates& rates);

struct ContextChoice {
  ContextMode mode = ContextMode::AllGather;
  std::array<std::optional<double>, 3> seconds;  // in the order of ContextMode
  std::string text() const;                      // "context_mode auto: ring (estimated waiting of a block: ...)"
};

// The least; of equals the one with fewer messages.
ContextChoice choose_context_mode(const ContextWork& work, const ContextRates& rates);

// As configured, or chosen for the configured transformer; `note` gets the choice's text then.
ContextMode context_mode_of(const config::RunConfig& config, const model::ModelShape& shape, const Mesh& mesh, bool is_gpu,
                            std::string* note = nullptr);

}  // namespace welkin::parallel
