// SPDX-License-Identifier: Apache-2.0
// What to say where a run does not fit into its memory: where the memory is, and what makes it smaller.
#include <algorithm>
#include <sstream>

#include "core/host.h"
#include "core/text.h"
#include "observe/table.h"
#include "train/device_memory.h"
#include "train/trainer.h"

namespace welkin::train {
namespace {

int64_t bytes_taken_by(const at::Tensor& tensor) { return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0; }

std::vector<std::string> as_table(const std::vector<MemoryItem>& items) {
  observe::Table table({{"memory of", observe::Align::Left}, {"size", observe::Align::Right}});
  for (const MemoryItem& item : items) table.add_row({item.name, format_bytes(static_cast<uint64_t>(item.bytes))});
  std::vector<std::string> lines;
  std::istringstream text(table.text());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

}  // namespace

// Activations are what is left: they live inside autograd's graph, where nobody holds a list of them.
std::vector<MemoryItem> Trainer::memory_items() {
  int64_t weights = 0, gradients = 0, states = 0;
  for (const parallel::ParamRow& row : parts_.table.rows()) {
    weights += bytes_taken_by(row.local);
    gradients += bytes_taken_by(row.gradient());
  }
  if (parts_.optimizer) {
    for (const NamedState& state : parts_.optimizer->states()) states += bytes_taken_by(state.value);
  }
  const int64_t rest = tensor_memory_in_use(device_) - weights - gradients - states - buffer_bytes_;
  return {{"weights", weights},
          {"gradients", gradients},
          {"optimizer", states},
          {"buffers", buffer_bytes_},
          {"activations", std::max<int64_t>(0, rest)}};
}

MemoryError Trainer::explained(const MemoryError& error) {
  const std::vector<MemoryItem> items = memory_items();
  context_.log.error(cat("Out of memory at step ", position_.iteration + 1));
  for (const std::string& line : as_table(items)) context_.log.error(cat("  ", line));
  const int64_t micro = config_.loop.micro_batch_size > 0 ? config_.loop.micro_batch_size : config_.loop.global_batch_size;
  const std::string smaller = micro > 1
                                  ? cat("Activations shrink with --micro_batch_size (now ", micro, " samples a forward pass)")
                                  : std::string("One sample a forward pass is the least: take a smaller model");
  return {error.use(), items, cat(smaller, " and --amp_mode bf16, buffers with prefetch_depth; or raise --memory_limit_gib")};
}

}  // namespace welkin::train
