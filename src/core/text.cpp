// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace welkin {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Distances from one word of at most 64 letters, a column of the table in one number: Hyyro, "A bit-vector algorithm for
// computing Levenshtein and Damerau edit distances", 2003.
class EditDistance {
 public:
  explicit EditDistance(std::string_view word) : length_(word.size()) {
    for (size_t i = 0; i < word.size(); ++i) places_[index_of(word[i])] |= uint64_t{1} << i;
  }

  // Insertions, deletions, substitutions and swaps of two neighbours, each one edit: the last is the commonest typing error. A
  // distance beyond `most` is any number above it.
  size_t to(std::string_view candidate, size_t most) const {
    const size_t longer = std::max(length_, candidate.size()), shorter = std::min(length_, candidate.size());
    if (longer - shorter > most || shorter == 0) return longer;
    const uint64_t last = uint64_t{1} << (length_ - 1);
    uint64_t up = ~uint64_t{0}, down = 0, diagonal = 0, before = 0;  // where the next row has one more, one less, the same
    size_t edits = length_;
    for (size_t left = candidate.size(); left > 0; --left) {
      if (edits > most + left) return edits;
      const uint64_t here = places_[index_of(candidate[candidate.size() - left])];
      const uint64_t swapped = ((~diagonal & here) << 1) & before;
      diagonal = (((here & up) + up) ^ up) | here | down | swapped;
      uint64_t right_up = down | ~(diagonal | up), right_down = diagonal & up;
      edits += (right_up & last) != 0 ? 1 : 0;
      edits -= (right_down & last) != 0 ? 1 : 0;
      right_up = right_up << 1 | 1, right_down <<= 1;
      up = right_down | ~(diagonal | right_up), down = right_up & diagonal;
      before = here;
    }
    return edits;
  }

 private:
  static size_t index_of(char c) { return static_cast<unsigned char>(lower(c)); }

  size_t length_ = 0;
  std::array<uint64_t, 256> places_{};  // of each letter in the word
};

}  // namespace

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates, size_t limit) {
  constexpr size_t kLongestWord = 64;  // a hostile key of a megabyte is no typing error
  if (word.size() > kLongestWord) return {};
  std::vector<std::pair<size_t, std::string>> scored;
  const EditDistance distance(word);
  for (const auto& candidate : candidates) {
    const size_t most = std::max(word.size(), candidate.size()) / 3;
    if (const size_t edits = distance.to(candidate, most); edits <= most) scored.emplace_back(edits, candidate);
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
