// SPDX-License-Identifier: Apache-2.0
#include "verify/layouts/covering_rows.h"

#include <map>
#include <queue>
#include <utility>

namespace welkin::verify {
namespace {

// Combinations of values that no chosen row has. A value of a column is a place: places of all columns count up from 0.
class Uncovered {
 public:
  Uncovered(const std::vector<std::vector<int>>& rows, size_t strength) : strength_(strength) {
    std::map<std::pair<size_t, int>, size_t> places;
    for (const std::vector<int>& row : rows) {
      std::vector<size_t>& of_row = places_.emplace_back();
      for (size_t column = 0; column < row.size(); ++column)
        of_row.push_back(places.try_emplace({column, row[column]}, places.size()).first->second);
    }
    num_places_ = places.size();
    size_t combinations = 1;
    for (size_t i = 0; i < strength; ++i) combinations *= num_places_;
    left_.assign(combinations, 0);
    for (size_t row = 0; row < rows.size(); ++row) for_each(row, [this](size_t combination) { left_[combination] = 1; });
  }

  size_t count_in(size_t row) const {
    size_t count = 0;
    for_each(row, [&](size_t combination) { count += static_cast<size_t>(left_[combination]); });
    return count;
  }

  void cover(size_t row) {
    for_each(row, [this](size_t combination) { left_[combination] = 0; });
  }

 private:
  template <typename Body>
  void for_each(size_t row, const Body& body) const {
    extend(places_[row], 0, 0, 0, body);
  }

  template <typename Body>
  void extend(const std::vector<size_t>& row, size_t column, size_t length, size_t combination, const Body& body) const {
    if (length == strength_) return body(combination);
    for (; column < row.size(); ++column) extend(row, column + 1, length + 1, combination * num_places_ + row[column], body);
  }

  size_t strength_;
  size_t num_places_ = 0;
  std::vector<std::vector<size_t>> places_;  // by row and column
  std::vector<char> left_;                   // by combination of places
};

}  // namespace

// Counts only fall, so a row's last count bounds it: the row on top that still has its count is the best (lazy greedy).
std::vector<size_t> covering_rows(const std::vector<std::vector<int>>& rows, size_t strength, std::vector<size_t> chosen) {
  Uncovered left(rows, strength);
  for (const size_t row : chosen) left.cover(row);
  struct Bound {
    size_t count, row;
    bool operator<(const Bound& other) const { return count != other.count ? count < other.count : row > other.row; }
  };
  std::priority_queue<Bound> bounds;
  for (size_t row = 0; row < rows.size(); ++row) bounds.push({left.count_in(row), row});
  while (!bounds.empty()) {
    const Bound best = bounds.top();
    bounds.pop();
    const size_t count = left.count_in(best.row);
    if (count == 0) continue;
    if (count < best.count) {
      bounds.push({count, best.row});
      continue;
    }
    left.cover(best.row);
    chosen.push_back(best.row);
  }
  return chosen;
}

}  // namespace welkin::verify
