// SPDX-License-Identifier: Apache-2.0
#include "bench/step/rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "core/stopwatch.h"

namespace welkin::bench {

double Rates::median() const {
  WELKIN_CHECK(!windows.empty(), "no window was measured");
  std::vector<double> sorted = windows;
  std::ranges::sort(sorted);
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Rates::min() const { return *std::ranges::min_element(windows); }
double Rates::max() const { return *std::ranges::max_element(windows); }

double Rates::spread() const { return (max() - min()) / median(); }

namespace {

// Number of batches that fill so many seconds, agreed by all ranks.
int64_t agreed_batches(const Work& work, double seconds, double per_batch, int64_t least) {
  const double wanted = std::clamp(std::ceil(seconds / std::max(per_batch, 1e-9)), static_cast<double>(least), 1e9);
  return work.agree(static_cast<int64_t>(wanted));
}

void give_up_if(const std::function<bool()>& interrupted) {
  if (!interrupted || !interrupted()) return;
  throw Interrupted("bench", "interrupted before all was measured: no file was written",
                    "Run it again; --windows and --window_seconds make it shorter");
}

int64_t do_batch(const WindowOptions& options, const Work& work) {
  const int64_t samples = work.batch();
  give_up_if(options.interrupted);
  return samples;
}

void warm_up(const WindowOptions& options, const Work& work, int64_t& per_window) {
  const Stopwatch watch;
  for (int64_t i = 0; i < options.warmup_batches; ++i) do_batch(options, work);
  if (!work.agree) {
    while (watch.seconds() < options.warmup_seconds) do_batch(options, work);
    work.settle();
    return;
  }
  // The first batches pay for set-up, so the pace is measured on one more.
  work.settle();
  const Stopwatch one;
  work.batch();
  work.settle();
  const double pace = one.seconds();
  for (int64_t more = agreed_batches(work, options.warmup_seconds - watch.seconds(), pace, 0); more > 0; --more) work.batch();
  work.settle();
  per_window = agreed_batches(work, options.window_seconds, pace, 1);
}

void measure_window(const WindowOptions& options, const Work& work, double seconds, int64_t per_window, Rates& rates) {
  const Stopwatch watch;
  int64_t samples = 0, batches = 0;
  do {
    samples += do_batch(options, work);
    ++batches;
  } while (per_window > 0 ? batches < per_window : watch.seconds() < seconds);
  work.settle();
  rates.windows.push_back(static_cast<double>(samples) / watch.seconds());
  rates.batches += batches;
}

constexpr double kShareToComeBack = 0.25;  // of a window's length

void come_back(const WindowOptions& options, const Work& work, double seconds, Rates& rates) {
  const Stopwatch watch;
  for (int64_t i = 0; i < options.warmup_batches || watch.seconds() < kShareToComeBack * seconds; ++i) {
    do_batch(options, work);
    ++rates.batches;
  }
  work.settle();
}

void measure_windows_asked_for(const WindowOptions& options, const Work& work, Rates& rates) {
  std::optional<double> last;
  for (;;) {
    if (work.rest) work.rest();
    const std::optional<double> seconds = options.next_window(last);
    give_up_if(options.interrupted);
    if (!seconds) break;
    come_back(options, work, *seconds, rates);
    measure_window(options, work, *seconds, /*per_window=*/0, rates);
    last = rates.windows.back();
  }
  if (!rates.windows.empty()) return;
  throw ConfigError("bench", "no window was asked for: standard input ended before its first line",
                    "Write the seconds of a window as a line, or leave --serve out");
}

}  // namespace

Rates measure_rates(const WindowOptions& options, const Work& work) {
  int64_t per_window = 0;  // 0: by the clock
  warm_up(options, work, per_window);
  if (work.warmed_up) work.warmed_up();
  Rates rates;
  if (options.next_window) {
    measure_windows_asked_for(options, work, rates);
  } else {
    for (int64_t i = 0; i < options.windows; ++i) {
      give_up_if(options.interrupted_anywhere);
      measure_window(options, work, options.window_seconds, per_window, rates);
    }
    give_up_if(options.interrupted_anywhere);
  }
  return rates;
}

std::string rates_text(const Rates& rates) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "%.4g samples/s (%.4g to %.4g in %zu windows)", rates.median(), rates.min(),
                rates.max(), rates.windows.size());
  return text.data();
}

}  // namespace welkin::bench
