// SPDX-License-Identifier: Apache-2.0
#include "train/memory_report.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "train/device_memory.h"

namespace welkin::train {
namespace {

int64_t bytes_taken_by(const at::Tensor& tensor) { return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0; }

// Activations are what is left: they live inside autograd's graph, where nobody holds a list of them. Before there is a model
// there are batches only.
std::vector<MemoryItem> items_of(const MemoryUse& use, KnownMemory known) {
  const int64_t named = known.weights + known.gradients + known.optimizer + known.buffers;
  int64_t rest = std::max<int64_t>(0, use.used - named);
  if (known.weights == 0) known.buffers += std::exchange(rest, 0);
  return {{"weights", known.weights},
          {"gradients", known.gradients},
          {"optimizer", known.optimizer},
          {"buffers", known.buffers},
          {"activations", rest}};
}

std::string remedy_of(const config::RunConfig& config) {
  const int64_t micro = config.loop.micro_batch_size > 0 ? config.loop.micro_batch_size : config.loop.global_batch_size;
  const std::string smaller = micro > 1
                                  ? cat("Activations shrink with --micro_batch_size (now ", micro, " samples a forward pass)")
                                  : std::string("One sample a forward pass is the least: take a smaller model");
  return cat(smaller, " and --amp_mode bf16, buffers with prefetch_depth",
             config.backend.memory_limit_gib > 0 ? "; or raise --memory_limit_gib" : "");
}

}  // namespace

KnownMemory known_memory(const parallel::ParamTable& table, Optimizer* optimizer, int64_t buffers) {
  KnownMemory known{.buffers = buffers};
  for (const parallel::ParamRow& row : table.rows()) {
    known.weights += bytes_taken_by(row.local);
    known.gradients += bytes_taken_by(row.gradient());
  }
  if (optimizer == nullptr) return known;
  for (const NamedState& state : optimizer->states()) known.optimizer += bytes_taken_by(state.value);
  return known;
}

MemoryError memory_error_in_flight(c10::Device device, const config::RunConfig& config) {
  try {
    throw;
  } catch (const MemoryError& error) {
    return error;
  } catch (const c10::OutOfMemoryError& error) {
    const auto limit_bytes = static_cast<int64_t>(config.backend.memory_limit_gib * (int64_t{1} << 30));
    return device_memory_error(error.what_without_backtrace(), device_memory_state(device.index()), limit_bytes);
  }
}

MemoryError explained(const MemoryError& error, const KnownMemory& known, const config::RunConfig& config) {
  if (!error.items().empty()) return error;
  return {error.use(), items_of(error.use(), known), remedy_of(config)};
}

}  // namespace welkin::train
