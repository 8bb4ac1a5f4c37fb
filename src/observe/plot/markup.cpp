// SPDX-License-Identifier: Apache-2.0
#include "observe/plot/markup.h"

#include <cstdint>

namespace welkin::observe {

std::string escaped_markup(std::string_view words) {
  std::string out;
  for (const char c : words) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\t') out += c;  // XML allows no other control characters
    }
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    const size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    for (size_t b = 0; b < 3; ++b) word = word << 8 | (b < count ? static_cast<uint8_t>(bytes[i + b]) : 0u);
    for (size_t c = 0; c < 4; ++c) text += c <= count ? kLetters[word >> (18 - 6 * c) & 63] : '=';
  }
  return text;
}

}  // namespace welkin::observe
