// SPDX-License-Identifier: Apache-2.0
#include "parallel/tokens/context_choice.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "config/schema/batch_plan.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

constexpr double kSumBytes = 4;        // gradients of keys and values are summed in float32
constexpr double kForwardFlops = 4;    // per query, key and feature: two matmuls
constexpr double kBackwardFlops = 10;  // five
constexpr std::array kModes{ContextMode::AllGather, ContextMode::AllToAll, ContextMode::Ring};  // by messages, fewest first

double elements(const ContextWork& work) { return static_cast<double>(work.batch * work.tokens * work.heads * work.head_dim); }

// Gathers keys and values of all tokens, and reduce-scatters their gradients.
double gather_seconds(const ContextWork& work, const ContextRates& rates) {
  const auto c = static_cast<double>(work.ranks);
  const double bytes = 2 * elements(work) * (static_cast<double>(work.value_bytes) + kSumBytes) * (c - 1) / c;
  return bytes / rates.bytes_per_second + 2 * (c - 1) * rates.latency_s;
}

// Exchanges q, k, v, the result, and their gradients: each rank keeps 1/c of the tokens and sends the rest of its heads.
double exchange_seconds(const ContextWork& work, const ContextRates& rates) {
  const auto c = static_cast<double>(work.ranks);
  const double bytes = 8 * elements(work) / c * static_cast<double>(work.value_bytes) * (c - 1) / c;
  return bytes / rates.bytes_per_second + 4 * (c - 1) * rates.latency_s;
}

// A block of keys and values is sent on while the current one is used, and so are the sums of gradients that follow it in the
// backward pass. Only the last turn, which brings the gradients home, cannot be hidden.
double ring_seconds(const ContextWork& work, const ContextRates& rates) {
  const auto c = static_cast<double>(work.ranks);
  const double block = 2 * elements(work) / c;
  const double turn = block * static_cast<double>(work.value_bytes) / rates.bytes_per_second + rates.latency_s;
  const double sums = block * kSumBytes / rates.bytes_per_second + rates.latency_s;
  const double pairs = elements(work) * static_cast<double>(work.tokens) / (c * c);
  const double forward_wait = std::max(0.0, turn - kForwardFlops * pairs / rates.flops_per_second);
  const double backward_wait = std::max(0.0, turn + sums - kBackwardFlops * pairs / rates.flops_per_second);
  return (c - 1) * (forward_wait + backward_wait) + sums;
}

}  // namespace

ContextRates typical_rates(bool is_gpu, int64_t value_bytes) {
  if (!is_gpu) return {.flops_per_second = 1e11, .bytes_per_second = 1e9, .latency_s = 5e-5};  // Gloo over loopback
  return {.flops_per_second = value_bytes == 2 ? 3e14 : 5e13, .bytes_per_second = 5e10, .latency_s = 2e-5};
}

std::optional<double> exposed_seconds(ContextMode mode, const ContextWork& work, const ContextRates& rates) {
  if (work.ranks == 1) return 0.0;
  if (mode == ContextMode::AllGather) return gather_seconds(work, rates);
  if (mode == ContextMode::Ring) return ring_seconds(work, rates);
  if (work.heads % work.ranks != 0) return std::nullopt;
  return exchange_seconds(work, rates);
}

ContextChoice choose_context_mode(const ContextWork& work, const ContextRates& rates) {
  ContextChoice choice;
  std::optional<double> least;
  for (const ContextMode mode : kModes) {
    const std::optional<double> seconds = exposed_seconds(mode, work, rates);
    choice.seconds.at(static_cast<size_t>(mode)) = seconds;
    if (!seconds || (least && *seconds >= *least)) continue;
    least = seconds;
    choice.mode = mode;
  }
  return choice;
}

std::string ContextChoice::text() const {
  std::vector<std::string> parts;
  for (const ContextMode each : {ContextMode::AllGather, ContextMode::Ring, ContextMode::AllToAll}) {
    const auto& wait = seconds.at(static_cast<size_t>(each));
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), "%.3g ms", wait.value_or(0) * 1e3);
    parts.push_back(cat(context_mode_name(each), " ", wait ? number.data() : "impossible: heads do not divide"));
  }
  return cat("context_mode auto: ", context_mode_name(mode), " (estimated waiting of a block: ", join(parts, ", "), ")");
}

ContextMode context_mode_of(const config::RunConfig& config, const model::ModelShape& shape, const Mesh& mesh, bool is_gpu,
                            std::string* note) {
  switch (config.parallel.context_mode) {
    case config::ContextMode::Ring:
      return ContextMode::Ring;
    case config::ContextMode::AllToAll:
      return ContextMode::AllToAll;
    case config::ContextMode::AllGather:
      return ContextMode::AllGather;
    case config::ContextMode::Auto:
      break;
  }
  const int64_t ranks = mesh.size(kSampleParts);
  if (ranks == 1) return ContextMode::AllGather;
  if (mesh.size(Axis::W) > 1 && config.model.dropout > 0) {
    if (note != nullptr) *note = "context_mode auto: all_to_all, which has dropout for fields that are cut along their width";
    return ContextMode::AllToAll;
  }
  ContextWork work{.tokens = 1,
                   .heads = std::max<int64_t>(1, config.model.num_heads / mesh.size(Axis::Tp)),
                   .head_dim = config.model.embed_dim / config.model.num_heads,
                   .value_bytes = config.precision.amp_mode == config::AmpMode::None ? 4 : 2,
                   .ranks = ranks};
  for (const int64_t extent : shape.grid) work.tokens *= extent / config.model.patch_size;
  work.batch = config::batch_plan(config, mesh.size(kDp)).micro;
  const ContextChoice choice = choose_context_mode(work, typical_rates(is_gpu, work.value_bytes));
  if (note != nullptr) *note = choice.text();
  return choice.mode;
}

}  // namespace welkin::parallel
