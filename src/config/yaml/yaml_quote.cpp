// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
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

// A character and the bytes that it takes; a byte that begins none in UTF-8 stands for itself.
struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
};

Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const auto follows = [&](size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  if (byte(0) >> 5 == 6 && follows(1)) return {(byte(0) & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (byte(0) >> 4 == 14 && follows(1) && follows(2))
    return {(byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {byte(0), 1};
}

// YAML folds line breaks (U+0085, U+2028 and U+2029 are some) and refuses control characters and codes that are no characters.
bool is_escaped(const Character& character) {
  const uint32_t code = character.code;
  const bool is_control = code < 0x20 || code == 0x7f || (character.bytes == 2 && code < 0xa0);
  return is_control || code == 0x2028 || code == 0x2029 || code == 0xfeff || code == 0xfffe || code == 0xffff;
}

bool has_escaped(std::string_view text) {
  for (; !text.empty(); text.remove_prefix(first_character(text).bytes)) {
    if (is_escaped(first_character(text))) return true;
  }
  return false;
}

std::string single_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c;
    if (c == '\'') quoted += '\'';
  }
  return quoted + "'";
}

std::string escape_of(uint32_t code) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string escape = code < 0x100 ? "\\x" : "\\u";
  for (int shift = code < 0x100 ? 4 : 12; shift >= 0; shift -= 4) escape += kHex[code >> shift & 15];
  return escape;
}

std::string double_quoted(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.code == '"' || character.code == '\\') quoted += '\\';
    if (is_escaped(character)) {
      quoted += escape_of(character.code);
    } else {
      quoted += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return quoted + "\"";
}

}  // namespace

std::string quote_if_needed(std::string_view text) {
  if (is_safe_plain(text)) return std::string(text);
  return has_escaped(text) ? double_quoted(text) : single_quoted(text);
}

}  // namespace welkin::config
