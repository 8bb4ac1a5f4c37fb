// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no bytes may make the YAML parser crash, hang or throw anything but a ConfigError, as a file or as a value of the
// command line; its nodes refer to nodes that there are, and every text reads back as it was when it is printed.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/yaml/yaml_document.h"
#include "config/yaml/yaml_scalar.h"
#include "core/error.h"

namespace {

namespace config = welkin::config;

void expect_as_printed(const std::string& text) {
  const auto again = config::parse_yaml_value(config::quote_if_needed(text), "printed");
  if (again.top().kind != config::YamlKind::String || again.top().text != text) std::abort();
}

void look_at(const config::YamlDocument& document) {
  int left = 4;  // texts that are printed: the parser is what is tested
  for (const config::YamlNode& node : document.nodes) {
    for (const config::YamlId item : node.items) (void)document.at(item);
    for (const config::YamlEntry& entry : node.entries) (void)document.at(entry.value);
    if (node.kind == config::YamlKind::String && left-- > 0) expect_as_printed(node.text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size - 1);
  const bool is_file = data[size - 1] % 4 != 0;  // the last byte: files of others begin as they are
  try {
    look_at(is_file ? config::parse_yaml(text, "fuzz") : config::parse_yaml_value(text, "fuzz"));
  } catch (const welkin::ConfigError&) {  // the one legal way to refuse
  }
  return 0;
}
