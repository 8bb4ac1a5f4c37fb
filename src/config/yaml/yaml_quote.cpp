// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>

#include "config/yaml/yaml_scalar.h"

namespace welkin::config {
namespace {

// Plain scalars as we write them: a narrow set that no YAML version reads in another way.
bool is_safe_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '.' ||
         c == '-' || c == '+';
}

bool is_safe_plain(std::string_view text) {
  const bool letters = !text.empty() && std::all_of(text.begin(), text.end(), is_safe_character);
  return letters && text[0] != '-' && text[0] != '+' && !(text[0] >= '0' && text[0] <= '9') &&
         type_scalar(text).kind == YamlKind::String && text != "None";
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string single_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c;
    if (c == '\'') quoted += '\'';
  }
  return quoted + "'";
}

std::string double_quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += "\\x";
      quoted += kHex[byte >> 4];
      quoted += kHex[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace

std::string quote_if_needed(std::string_view text) {
  if (is_safe_plain(text)) return std::string(text);
  return has_control_character(text) ? double_quoted(text) : single_quoted(text);
}

}  // namespace welkin::config
