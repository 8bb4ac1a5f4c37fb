// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace welkin {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Insertions, deletions, substitutions and swaps of two neighbours, each one edit: the last is the commonest typing error.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const auto same = [&](size_t at_a, size_t at_b) { return lower(a[at_a - 1]) == lower(b[at_b - 1]); };
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same(i, j) ? 0 : 1)});
      if (i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j)) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates, size_t limit) {
  constexpr size_t kLongestWord = 64;  // a hostile key of a megabyte is nobody's typing error
  if (word.size() > kLongestWord) return {};
  std::vector<std::pair<size_t, std::string>> scored;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance * 3 <= std::max(word.size(), candidate.size())) scored.emplace_back(distance, candidate);
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(limit, scored.size()); ++i) names.push_back(scored[i].second);
  return names;
}

std::string wrapped(std::string_view text, size_t width, size_t indent) {
  std::string lines;
  while (text.size() + indent > width) {
    size_t blank = text.rfind(' ', width - indent);
    if (blank == std::string_view::npos || blank == 0) blank = text.find(' ', 1);  // a word that is too long stays whole
    if (blank == std::string_view::npos) break;
    lines += cat(text.substr(0, blank), "\n", std::string(indent, ' '));
    text.remove_prefix(blank + 1);
  }
  return lines + std::string(text);
}

}  // namespace welkin
