// SPDX-License-Identifier: Apache-2.0
#include "observe/log/meters.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace welkin::observe {

Window::Window(size_t capacity) : capacity_(capacity) { WELKIN_CHECK(capacity > 0, "a window needs room for a value"); }

void Window::add(double value) {
  if (values_.size() < capacity_) {
    values_.push_back(value);
  } else {
    values_[next_] = value;
    next_ = (next_ + 1) % capacity_;
  }
}

double Window::mean() const {
  return values_.empty() ? 0.0 : std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size());
}

double Window::quantile(double share) const {
  if (values_.empty()) return 0.0;
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const double position = std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

}  // namespace welkin::observe
