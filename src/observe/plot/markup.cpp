// SPDX-License-Identifier: Apache-2.0
#include "observe/plot/markup.h"

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
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\t') out += c;  // XML has no other control characters
    }
  }
  return out;
}

}  // namespace welkin::observe
