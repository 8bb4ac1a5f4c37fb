// SPDX-License-Identifier: Apache-2.0
#include "core/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace welkin {
namespace {

struct CodeRange {
  uint32_t first, last;
};

// Controls, marks of direction, invisible characters, ends of lines, private use, codes that are no characters.
constexpr std::array<CodeRange, 14> kUnprintable{{{0x7f, 0x9f},
                                                  {0xad, 0xad},
                                                  {0x61c, 0x61c},
                                                  {0x115f, 0x1160},
                                                  {0x180e, 0x180e},
                                                  {0x200b, 0x200f},
                                                  {0x2028, 0x202e},
                                                  {0x2060, 0x206f},
                                                  {0xd800, 0xf8ff},
                                                  {0xfe00, 0xfe0f},
                                                  {0xfeff, 0xfeff},
                                                  {0xfff0, 0xfffb},
                                                  {0xfffe, 0xffff},
                                                  {0xe0000, 0x10ffff}}};

struct Character {
  size_t bytes = 0;  // 0: it is no UTF-8 in its shortest form
  uint32_t code = 0;
};

// The character at the beginning of `text`.
Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {.bytes = 1, .code = lead};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  uint32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3f);
  }
  const uint32_t smallest = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < smallest || code > 0x10ffff || is_surrogate ? Character{} : Character{.bytes = length, .code = code};
}

// Bytes of the character at the beginning of `text` that may be printed; 0: it may not, or is no UTF-8.
size_t printable_bytes(std::string_view text) {
  const Character first = first_character(text);
  const uint32_t code = first.code;
  if (code < 0x80) return code >= 32 && code < 127 ? first.bytes : 0;
  const bool hidden =
      std::ranges::any_of(kUnprintable, [&](const CodeRange& range) { return code >= range.first && code <= range.last; });
  return hidden ? 0 : first.bytes;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr size_t kMostCharacters = 200;
  std::string result;
  for (size_t count = 0; !text.empty(); ++count) {
    if (count == kMostCharacters) return result + "...";
    const size_t bytes = printable_bytes(text);
    if (bytes > 0) {
      result += text.substr(0, bytes);
    } else {
      result += text.front() == '\n' ? ' ' : '?';
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return result;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = first_character(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string printable_lines(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 32 && c != '\n') || byte == 127) c = '?';
  }
  return result;
}

}  // namespace welkin
