// SPDX-License-Identifier: Apache-2.0
#include "train/bench/rates.h"

#include <algorithm>

#include "core/error.h"
#include "core/stopwatch.h"
#include "core/text.h"

namespace welkin::train::bench {

double Rates::median() const {
  WELKIN_CHECK(!windows.empty(), "no window was measured");
  std::vector<double> sorted = windows;
  std::ranges::sort(sorted);
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Rates::min() const { return *std::ranges::min_element(windows); }
double Rates::max() const { return *std::ranges::max_element(windows); }

Rates measure_rates(const WindowOptions& options, const std::function<int64_t()>& batch, const std::function<void()>& settle) {
  const Stopwatch warmup;
  for (int64_t i = 0; i < options.warmup_batches || warmup.seconds() < options.warmup_seconds; ++i) batch();
  settle();
  Rates rates;
  for (int64_t window = 0; window < options.windows; ++window) {
    const Stopwatch watch;
    int64_t samples = 0;
    do {
      samples += batch();
    } while (watch.seconds() < options.window_seconds);
    settle();
    rates.windows.push_back(static_cast<double>(samples) / watch.seconds());
  }
  return rates;
}

std::string rates_text(const Rates& rates) {
  return cat(rates.median(), " samples/s (", rates.min(), " to ", rates.max(), " in ", rates.windows.size(), " windows)");
}

}  // namespace welkin::train::bench
