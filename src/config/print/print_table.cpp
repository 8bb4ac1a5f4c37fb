// SPDX-License-Identifier: Apache-2.0
// The configuration as a table for people.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "config/draft/origin.h"
#include "config/flags/flag.h"
#include "config/print/print.h"
#include "config/resolve/paths.h"
#include "config/resolve/tutorial.h"
#include "config/schema/key.h"
#include "config/schema/value.h"
#include "core/text.h"

namespace welkin::config {
namespace {

using PrintedRow = std::array<std::string, 4>;

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

// Columns as wide as their widest cell, but no wider than `limit`; the last one is not padded.
std::string aligned(const std::vector<PrintedRow>& rows) {
  constexpr size_t kLimit = 60;
  std::array<size_t, 4> width{};
  for (const PrintedRow& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::min(kLimit, std::max(width[i], row[i].size()));
  }
  std::string text;
  for (const PrintedRow& row : rows) {
    std::string line = "  ";
    for (size_t i = 0; i + 1 < row.size(); ++i) line += padded(row[i], width[i]) + "  ";
    line += row.back();
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string programs_flags(Tutorial tutorial) {
  std::vector<std::string> names;
  for (const Flag& flag : all_flags({})) {
    if ((flag.tutorials & bit_of(tutorial)) != 0) names.push_back(flag.name);
  }
  return join(names, " ");
}

std::string heading(const Resolved& resolved, int64_t world_size) {
  const RunConfig& config = resolved.config;
  std::string text;
  if (!config.yaml_config.empty()) text += cat("file        ", config.yaml_config, ", preset ", config.config, "\n");
  const std::string why = resolved.origins.at("tutorial").text;
  text += cat("tutorial    ", tutorial_title(config.tutorial), " (", why, ")\n");
  if (config.tutorial != Tutorial::None) text += cat("its flags   ", programs_flags(config.tutorial), "\n");
  text += cat("model       ", config.model.model,
              config.model.model == "vit" ? cat(", q/k/v ", name_of(config.model.qkv)) : std::string(), "\n");
  text += cat("processes   ", world_size, "\n");
  text += cat("run folder  ", run_folder(config, world_size), "\n");
  return text;
}

}  // namespace

std::string table(const Resolved& resolved, int64_t world_size) {
  std::vector<PrintedRow> rows = {{"key", "value", "unit", "origin"}};
  std::string_view component;
  for (const Key& key : schema()) {
    const Origin& origin = resolved.origins.at(std::string(key.path));
    if (origin.layer == Layer::Default && !has_effect(key, resolved.config)) continue;
    if (component_of(key) != component) {
      component = component_of(key);
      rows.push_back({cat("[", component, "]"), "", "", ""});
    }
    rows.push_back({std::string(key.flat), value_text(resolved.config, key), std::string(key.unit), origin.text});
  }
  for (const auto& [name, value] : resolved.config.options) rows.push_back({cat("options.", name), value, "", ""});
  std::string text = heading(resolved, world_size) + "\n" + aligned(rows);
  for (const std::string& note : resolved.notes) text += cat("note: ", note, "\n");
  return text;
}

}  // namespace welkin::config
