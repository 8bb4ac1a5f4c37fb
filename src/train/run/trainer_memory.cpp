// SPDX-License-Identifier: Apache-2.0
// A run that does not fit into its memory: what its log and its error say.
#include <sstream>

#include "core/host.h"
#include "core/text.h"
#include "observe/log/table.h"
#include "train/device/memory_report.h"
#include "train/run/trainer.h"

namespace welkin::train {
namespace {

std::vector<std::string> as_table(const std::vector<MemoryItem>& items) {
  observe::Table table({{"memory of", observe::Align::Left}, {"size", observe::Align::Right}});
  for (const MemoryItem& item : items) table.add_row({item.name, format_bytes(static_cast<uint64_t>(item.bytes))});
  std::vector<std::string> lines;
  std::istringstream text(table.text());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

}  // namespace

MemoryError Trainer::out_of_memory(const MemoryError& found) {
  MemoryError error = explained(found, known_memory(setup_.get(), buffer_bytes_, pipeline_ != nullptr), config_);
  context_.log.error(cat("Out of memory at step ", position_.iteration + 1));
  for (const std::string& line : as_table(error.items())) context_.log.error(cat("  ", line));
  return error;
}

}  // namespace welkin::train
