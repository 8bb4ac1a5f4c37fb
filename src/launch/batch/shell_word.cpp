// SPDX-License-Identifier: Apache-2.0
#include "launch/batch/shell_word.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {

std::string shell_word(const std::string& word) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_word(word));
  return join(quoted, " ");
}

std::string directive_value(const std::string& value) {
  if (value.find_first_of(" \t\"'\\#") == std::string::npos) return value;
  for (const char quote : {'"', '\''}) {
    const bool is_quoted = value.size() >= 2 && value.front() == quote && value.find(quote, 1) == value.size() - 1;
    if (is_quoted) return value;
  }
  if (value.find_first_of("\"\\") == std::string::npos) return cat("\"", value, "\"");
  if (value.find('\'') == std::string::npos) return cat("'", value, "'");
  throw ConfigError("launch", cat("a directive holds both kinds of quotes: value=", value),
                    "Batch systems read quotes each in its own way: leave out one kind");
}

}  // namespace welkin::launch
