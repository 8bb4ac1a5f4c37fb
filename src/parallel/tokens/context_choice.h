// SPDX-License-Identifier: Apache-2.0
// context_mode auto: chooses the cheapest of the three exchanges of context_attention.h by arithmetic alone, so that every
// rank, and a resumed run, make the same choice.
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

// Attention of one block on one rank of tp, before the split over cp.
struct ContextWork {
  int64_t batch = 1;  // samples of a forward pass
  int64_t tokens = 0;
  int64_t heads = 0;  // of this rank of tp
  int64_t head_dim = 0;
  int64_t value_bytes = 4;  // of q, k and v as they are sent
  int64_t ranks = 1;        // of cp
};

struct ContextRates {
  double flops_per_second = 0;  // of attention on one rank
  double bytes_per_second = 0;  // that a rank sends, and receives at the same time
  double latency_s = 0;         // of a message
};

// Typical rates of the device. Orders of magnitude are enough: the modes differ by factors.
ContextRates typical_rates(bool is_gpu, int64_t value_bytes);

// Seconds that forward and backward pass of a block wait for an exchange; nothing if the mode is impossible. A ring waits only
// for communication that its matmuls do not hide.
std::optional<double> exposed_seconds(ContextMode mode, const ContextWork& work, const ContextRates& rates);

struct ContextChoice {
  ContextMode mode = ContextMode::AllGather;
  std::array<std::optional<double>, 3> seconds;  // in the order of ContextMode
  std::string text() const;                      // "context_mode auto: ring (estimated waiting of a block: ...)"
};

// The mode with the least waiting; of equal modes the one with fewer messages.
ContextChoice choose_context_mode(const ContextWork& work, const ContextRates& rates);

// The configured mode, or the choice for the configured transformer, whose text `note` then gets.
ContextMode context_mode_of(const config::RunConfig& config, const model::ModelShape& shape, const Mesh& mesh, bool is_gpu,
                            std::string* note = nullptr);

}  // namespace welkin::parallel
