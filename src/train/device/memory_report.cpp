// SPDX-License-Identifier: Apache-2.0
#include "train/device/memory_report.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/batch_plan.h"
#include "core/process/host.h"
#include "core/text.h"
#include "train/device/device_memory.h"

namespace welkin::train {
namespace {

int64_t bytes_taken_by(const at::Tensor& tensor) { return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0; }

constexpr std::array<std::string_view, 5> kItems{"weights", "gradients", "optimizer", "buffers", "activations"};

// The rest has no list: activations, for example, live inside autograd's graph.
std::vector<MemoryItem> items_of(const MemoryUse& use, const KnownMemory& known) {
  const int64_t named = known.weights + known.gradients + known.optimizer + known.buffers;
  const std::array<int64_t, kItems.size()> bytes{known.weights, known.gradients, known.optimizer, known.buffers, 0};
  std::vector<MemoryItem> items;
  for (size_t i = 0; i < kItems.size(); ++i) items.push_back({std::string(kItems[i]), bytes[i]});
  for (MemoryItem& item : items) {
    if (item.name != known.rest) continue;
    item.bytes += std::max<int64_t>(0, use.used - named);
    if (use.of_process) item.name += " and the program";
  }
  return items;
}

// torch's CPU allocator throws an error without a type of its own.
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

// "--a, --b and --c".
std::string listed(std::vector<std::string> ways) {
  const std::string last = ways.back();
  ways.pop_back();
  return cat(join(ways, ", "), ways.empty() ? "" : " and ", last);
}

// The remedies that shrink activations and are not used yet.
std::string remedy_for_activations(const config::RunConfig& config, const KnownMemory& known) {
  const config::BatchPlan batch = config::batch_plan(config);
  std::vector<std::string> ways;
  if (batch.micro > 1 && batch.units == 0)
    ways.push_back(cat("--micro_batch_size (now ", batch.micro, " samples a forward pass)"));
  if (known.trains && known.has_blocks && config.loop.activation_checkpointing.part != config::CheckpointedPart::Blocks) {
    ways.emplace_back("--activation_checkpointing blocks");
  }
  if (config.precision.amp_mode == config::AmpMode::None) ways.emplace_back("--amp_mode bf16");
  if (ways.empty()) ways.emplace_back("a smaller model: nothing else is left");
  return cat("activations shrink with ", listed(std::move(ways)));
}

// For weights, gradients and optimizer state, all of them some numbers per weight. If the weights alone are too large,
// shrinking the others does not help.
std::string remedy_for_state(const config::RunConfig& config, const KnownMemory& known) {
  const bool trains = known.trains, weights_alone = known.rest == "weights";
  std::vector<std::string> ways;
  if (trains && !weights_alone && config.optimizer.optimizer != "SGD") ways.emplace_back("--set optimizer=SGD");
  if (trains && known.has_plan) {
    const int64_t now = config.parallel.tensor_parallel;
    ways.push_back(cat("--tensor_parallel over more processes", now > 1 ? cat(" (now ", now, ")") : ""));
  }
  ways.emplace_back("a smaller model");
  return cat("weights", trains && !weights_alone ? ", gradients and the optimizer's state" : "", " shrink with ",
             listed(std::move(ways)));
}

std::string remedy_for_buffers(const config::RunConfig& config) {
  std::vector<std::string> ways;
  if (config.data.prefetch_depth > 1) ways.push_back(cat("--set prefetch_depth=1 (now ", config.data.prefetch_depth, ")"));
  ways.emplace_back("smaller batches");
  return cat("buffers shrink with ", listed(std::move(ways)));
}

// Remedies for the largest kind, and for kinds of at least a tenth of it. The failed request counts for `rest`.
std::string remedies_by_size(const MemoryUse& use, const KnownMemory& known, const config::RunConfig& config) {
  struct Kind {
    int64_t bytes = 0;  // bytes of its largest item
    std::string remedy;
  };
  Kind state{.remedy = remedy_for_state(config, known)}, buffers{.remedy = remedy_for_buffers(config)};
  Kind activations{.remedy = remedy_for_activations(config, known)};
  const std::vector<MemoryItem> items = items_of(use, known);
  for (size_t i = 0; i < items.size(); ++i) {
    Kind& kind = kItems[i] == "activations" ? activations : kItems[i] == "buffers" ? buffers : state;
    kind.bytes = std::max(kind.bytes, items[i].bytes + (kItems[i] == known.rest ? use.requested : 0));
  }
  std::vector<Kind> kinds{activations, state, buffers};
  std::ranges::stable_sort(kinds, std::greater(), &Kind::bytes);
  constexpr int64_t kWorthIt = 10;  // a tenth
  std::vector<std::string> remedies{kinds.front().remedy};
  for (size_t i = 1; i < kinds.size(); ++i) {
    if (kinds[i].bytes > 0 && kinds[i].bytes >= kinds.front().bytes / kWorthIt) remedies.push_back(kinds[i].remedy);
  }
  std::string text = join(remedies, "; ");
  text.front() = static_cast<char>(std::toupper(text.front()));
  return text;
}

std::string remedy_of(const MemoryUse& use, const KnownMemory& known, const config::RunConfig& config) {
  const std::string_view larger = use.of_process                        ? kGiveMore
                                  : config.backend.memory_limit_gib > 0 ? "or raise --memory_limit_gib"
                                                                        : "";
  return cat(remedies_by_size(use, known, config), larger.empty() ? "" : "; ", larger);
}

}  // namespace

KnownMemory known_memory(const parallel::ParamTable& table, Optimizer* optimizer, int64_t buffers, bool has_buffers) {
  const auto being_made = [&] {
    if (table.rows().empty()) return has_buffers ? "weights" : "buffers";
    return optimizer == nullptr ? "optimizer" : "activations";
  };
  KnownMemory known{.buffers = buffers, .rest = being_made(), .trains = true};
  for (const parallel::ParamRow& row : table.rows()) {
    known.weights += row.held_bytes();
    known.gradients += bytes_taken_by(row.local.grad());
    if (row.shard.defined()) known.gradients += bytes_taken_by(row.shard.grad());
  }
  if (optimizer == nullptr) return known;
  for (const NamedState& state : optimizer->states()) known.optimizer += state.held_bytes();
  return known;
}

std::optional<MemoryError> memory_error_if_any(int64_t limit_bytes) {
  try {
    throw;
  } catch (const MemoryError& error) {
    return error;
  } catch (const c10::Error& error) {
    const std::string_view message = error.what_without_backtrace();
    if (is_device_out_of_memory(error)) {
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
  const auto error = memory_error_if_any(bytes_of_limit(config.backend.memory_limit_gib));
  if (!error) throw;
  return *error;
}

MemoryError explained(const MemoryError& error, const KnownMemory& known, const config::RunConfig& config) {
  if (!error.items().empty()) return error;
  return {error.use(), items_of(error.use(), known), remedy_of(error.use(), known, config)};
}

}  // namespace welkin::train
