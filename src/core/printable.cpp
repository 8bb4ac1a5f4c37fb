// SPDX-License-Identifier: Apache-2.0
#include "core/printable.h"

namespace welkin {

std::string printable(std::string_view text) {
  std::string result(text.substr(0, 200));
  for (char& c : result) {
    if (c < 32 || c > 126) c = c == '\n' ? ' ' : '?';
  }
  return text.size() > result.size() ? result + "..." : result;
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
