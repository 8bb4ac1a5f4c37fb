// SPDX-License-Identifier: Apache-2.0
#include "data/sample/field_pairs.h"

#include <algorithm>

#include "core/error.h"

namespace welkin::data {

FieldPairs::FieldPairs(std::vector<int64_t> steps_per_file, PairOptions options)
    : steps_(std::move(steps_per_file)), options_(options), first_index_{0} {
  for (const int64_t steps : steps_) {
    first_index_.push_back(first_index_.back() + std::max<int64_t>(0, steps - options_.lead - options_.history + 1));
  }
}

int64_t FieldPairs::count() const {
  if (options_.rules == Rules::Tutorial) return static_cast<int64_t>(steps_.size()) * steps_.front();
  return first_index_.back();
}

FieldPair FieldPairs::at(int64_t index) const {
  WELKIN_CHECK(index >= 0 && index < count(), "a sample index outside the data set");
  if (options_.rules == Rules::Tutorial) {
    const int64_t steps = steps_.front();
    int64_t step = index % steps % (steps - options_.lead);
    if (step < options_.lead) step += options_.lead;
    return {index / steps, step};
  }
  const auto next = std::ranges::upper_bound(first_index_, index);
  const auto file = next - first_index_.begin() - 1;
  return {file, index - first_index_[static_cast<size_t>(file)] + options_.history - 1};
}

bool FieldPairs::exists(const FieldPair& pair) const {
  return pair.step >= options_.history - 1 && pair.step + options_.lead < steps_[static_cast<size_t>(pair.file)];
}

}  // namespace welkin::data
