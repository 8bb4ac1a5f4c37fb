// SPDX-License-Identifier: Apache-2.0
#include "train/memory_report.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "core/host.h"
#include "core/text.h"
#include "train/device_memory.h"

namespace welkin::train {
namespace {

int64_t bytes_taken_by(const at::Tensor& tensor) { return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0; }

// What is left is for something of which nobody holds a list: activations, for one, live inside autograd's graph.
std::vector<MemoryItem> items_of(const MemoryUse& use, const KnownMemory& known) {
  const int64_t named = known.weights + known.gradients + known.optimizer + known.buffers;
  std::vector<MemoryItem> items{{"weights", known.weights},
                                {"gradients", known.gradients},
                                {"optimizer", known.optimizer},
                                {"buffers", known.buffers},
                                {"activations", 0}};
  for (MemoryItem& item : items) {
    if (item.name != known.rest) continue;
    item.bytes += std::max<int64_t>(0, use.used - named);
    if (use.of_process) item.name += " and the program";
  }
  return items;
}

// torch's allocator of a CPU says it with an error of no type of its own.
constexpr std::string_view kRefusedByTheSystem = "DefaultCPUAllocator: can't allocate memory";
constexpr std::string_view kGiveMore = "or give the process more (ulimit -v, the memory of its job)";

MemoryError refused_by_the_system(int64_t requested) {
  const ProcessMemory memory = process_memory();
  return {{.requested = requested,
           .used = static_cast<int64_t>(memory.peak),
           .limit = static_cast<int64_t>(memory.limit),
           .of_process = true},
          {},
          cat("Take something smaller, ", kGiveMore)};
}

// What would make activations fewer, of what is not used yet. `trains`: a backward pass follows.
std::string remedy_for_activations(const config::RunConfig& config, bool trains) {
  const int64_t of_rank = config.loop.local_batch_size.value_or(config.loop.global_batch_size);
  const int64_t micro = config.loop.micro_batch_size > 0 ? std::min(config.loop.micro_batch_size, of_rank) : of_rank;
  std::vector<std::string> ways;
  if (micro > 1) ways.push_back(cat("--micro_batch_size (now ", micro, " samples a forward pass)"));
  if (trains && config.model.model == "vit" && config.loop.activation_checkpointing != "blocks") {
    ways.emplace_back("--activation_checkpointing blocks");
  }
  if (config.precision.amp_mode == config::AmpMode::None) ways.emplace_back("--amp_mode bf16");
  if (ways.empty()) ways.emplace_back("a smaller model: nothing else is left");
  const std::string last = ways.back();
  ways.pop_back();
  return cat("Activations shrink with ", join(ways, ", "), ways.empty() ? "" : " and ", last);
}

std::string remedy_of(const MemoryUse& use, const KnownMemory& known, const config::RunConfig& config) {
  const std::string_view larger = use.of_process                        ? kGiveMore
                                  : config.backend.memory_limit_gib > 0 ? "or raise --memory_limit_gib"
                                                                        : "";
  return cat(remedy_for_activations(config, known.optimizer + known.gradients > 0), ", buffers with prefetch_depth",
             larger.empty() ? "" : "; ", larger);
}

}  // namespace

KnownMemory known_memory(const parallel::ParamTable& table, Optimizer* optimizer, int64_t buffers, bool has_buffers) {
  KnownMemory known{.buffers = buffers, .rest = !table.rows().empty() ? "activations" : has_buffers ? "weights" : "buffers"};
  for (const parallel::ParamRow& row : table.rows()) {
    known.weights += bytes_taken_by(row.local);
    known.gradients += bytes_taken_by(row.gradient());
  }
  if (optimizer == nullptr) return known;
  for (const NamedState& state : optimizer->states()) known.optimizer += bytes_taken_by(state.value);
  return known;
}

std::optional<MemoryError> memory_error_if_any(int64_t limit_bytes) {
  try {
    throw;
  } catch (const MemoryError& error) {
    return error;
  } catch (const c10::Error& error) {
    const std::string_view message = error.what_without_backtrace();
    if (says_device_is_full(error)) {
      return device_memory_error(message, device_memory_state(at::accelerator::getDeviceIndex()), limit_bytes);
    }
    if (message.find(kRefusedByTheSystem) == std::string_view::npos) return std::nullopt;
    return refused_by_the_system(requested_bytes(message));
  } catch (const std::bad_alloc&) {
    return refused_by_the_system(0);
  } catch (...) {
    return std::nullopt;
  }
}

MemoryError memory_error_in_flight(const config::RunConfig& config) {
  const auto error = memory_error_if_any(static_cast<int64_t>(config.backend.memory_limit_gib * (int64_t{1} << 30)));
  if (!error) throw;
  return *error;
}

MemoryError explained(const MemoryError& error, const KnownMemory& known, const config::RunConfig& config) {
  if (!error.items().empty()) return error;
  return {error.use(), items_of(error.use(), known), remedy_of(error.use(), known, config)};
}

}  // namespace welkin::train
