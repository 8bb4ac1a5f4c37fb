// SPDX-License-Identifier: Apache-2.0
// Joining values into text, for messages and logs. Not for the hot path.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace welkin {

// cat("n=", 3, ", path=", p) -> "n=3, path=..."
template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  out.precision(9);
  (out << ... << parts);
  return out.str();
}

template <typename Range>
std::string join(const Range& items, std::string_view separator) {
  std::ostringstream out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << separator;
    out << item;
    first = false;
  }
  return out.str();
}

// At most `limit` of `candidates`, nearest first by edit distance, none farther than a third of the longer word: "did you mean".
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates, size_t limit = 3);

// `text` behind `indent` blanks in lines of at most `width` columns, cut at its blanks. The first line comes without the
// indent, for the text before it.
std::string wrapped(std::string_view text, size_t width, size_t indent);

}  // namespace welkin
