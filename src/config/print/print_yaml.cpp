// SPDX-License-Identifier: Apache-2.0
// The configuration as a file that loads again to the same configuration.
#include <string>
#include <string_view>
#include <vector>

#include "config/print/print.h"
#include "config/schema/key.h"
#include "config/schema/value.h"
#include "config/yaml/yaml_scalar.h"
#include "core/text.h"

namespace welkin::config {
namespace {

// Keys that would change nothing are left out. So is local_batch_size, which follows from global_batch_size and the number of
// processes of a run.
bool is_written(const RunConfig& config, const RunConfig& defaults, const Key& key) {
  if (key.path == "loop.local_batch_size") return false;
  return has_effect(key, config) || value_text(config, key) != value_text(defaults, key);
}

// The lines of one path: headings for the components that it opens after `open`, then the value.
void write_key(std::string& text, std::vector<std::string_view>& open, std::string_view path, const std::string& value) {
  const auto parts = split(path, '.');
  size_t common = 0;
  while (common < open.size() && common + 1 < parts.size() && open[common] == parts[common]) ++common;
  open.resize(common);
  for (size_t level = common; level + 1 < parts.size(); ++level) {
    text += cat(std::string(2 * (level + 1), ' '), parts[level], ":\n");
    open.push_back(parts[level]);
  }
  text += cat(std::string(2 * parts.size(), ' '), parts.back(), ": ", value, "\n");
}

}  // namespace

std::string yaml(const RunConfig& config) {
  std::string text = cat("# A resolved configuration. Run it again: welkin train --yaml_config THIS_FILE --config ",
                         quote_if_needed(config.config), "\n");
  text += cat(quote_if_needed(config.config), ":\n");
  std::vector<std::string_view> open;
  const RunConfig defaults;
  for (const Key& key : schema()) {
    if (is_written(config, defaults, key)) write_key(text, open, key.path, value_text(config, key));
  }
  if (config.options.empty()) return text;
  text += "  options:\n";
  for (const auto& [name, value] : config.options) text += cat("    ", quote_if_needed(name), ": ", quote_if_needed(value), "\n");
  return text;
}

}  // namespace welkin::config
