// SPDX-License-Identifier: Apache-2.0
// One value of the schema: read from a YAML node, checked against its row, and written as text. Knows types, not meanings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/key.h"
#include "config/yaml/yaml_document.h"

namespace welkin::config {

// Puts the node into the key's field. If that fails, returns the reason for a message: "wants an integer, is a string". Ranges
// are not checked.
std::optional<std::string> assign(RunConfig& config, const Key& key, const YamlDocument& document, YamlId id);

// The text of a node that should name a value of the key's enum and does not (empty for null), so that nothing can be assigned.
std::optional<std::string> unknown_choice(const Key& key, const YamlNode& node);

// The reason why a text is not one of the key's choices: "is none of on, off"; empty when it is one.
std::optional<std::string> check_choice(std::string_view text, const Key& key);

// The fault of the field's value (range, choices, length): "is below 1"; empty when there is none. Both configurations are only
// read: an accessor hands out mutable references.
std::optional<std::string> check(RunConfig& config, RunConfig& defaults, const Key& key);

// The value as YAML in flow style, which assign() reads back to the same value.
std::string value_text(const RunConfig& config, const Key& key);

// The value as Python's print shows it: True, None, 0.0005, [360, 720], none; `nested` in a list or dict, where strings have
// quotes.
std::string python_text(const RunConfig& config, const Key& key, bool nested = false);

// "integer", "list of numbers", "none | fp16 | bf16": for the help, the docs and messages.
std::string type_name(const Key& key);

// True if the key's value is a string of its own, so that a flag's text is taken as it stands.
bool is_text(const Key& key);
// True for a list of such strings: a flag takes its elements joined by commas.
bool is_text_list(const Key& key);
bool is_switch(const Key& key);

}  // namespace welkin::config
