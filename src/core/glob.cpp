// SPDX-License-Identifier: Apache-2.0
#include "core/glob.h"

namespace welkin {
namespace {

bool is_wild(char c) { return c == '*' || c == '?'; }

// ends[i]: the end in `name` of the match of pattern[0, i). Goes back to the last star only: earlier ones could not do better.
std::optional<std::vector<size_t>> glob_ends(std::string_view pattern, std::string_view name) {
  std::vector<size_t> ends(pattern.size() + 1, 0);
  constexpr size_t kNone = std::string_view::npos;
  size_t p = 0, n = 0, star = kNone;
  while (n < name.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p;
      ends[++p] = n;
    } else if (p < pattern.size() && n < name.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ends[++p] = ++n;
    } else if (star != kNone && ends[star + 1] < name.size()) {
      n = ++ends[star + 1];
      p = star + 1;
    } else {
      return {};
    }
  }
  return ends;
}

}  // namespace

std::optional<std::vector<std::string>> glob_match(std::string_view pattern, std::string_view name) {
  const auto ends = glob_ends(pattern, name);
  if (!ends) return {};
  std::vector<std::string> parts;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (is_wild(pattern[i])) parts.emplace_back(name.substr((*ends)[i], (*ends)[i + 1] - (*ends)[i]));
  }
  return parts;
}

bool matches_glob(std::string_view pattern, std::string_view name) { return glob_ends(pattern, name).has_value(); }

std::string glob_filled(std::string_view pattern, const std::vector<std::string>& parts) {
  std::string filled;
  size_t next = 0;
  for (const char c : pattern) {
    if (is_wild(c) && next < parts.size()) {
      filled += parts[next++];
    } else {
      filled += c;
    }
  }
  return filled;
}

}  // namespace welkin
