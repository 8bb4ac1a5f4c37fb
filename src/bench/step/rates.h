// SPDX-License-Identifier: Apache-2.0
// Rates measured in windows of time, and their spread: the result of every mode of `welkin bench`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace welkin::bench {

struct WindowOptions {
  int64_t warmup_batches = 2;  // at least so many, and
  double warmup_seconds = 0.5;
  int64_t windows = 5;  // at least 1
  double window_seconds = 1.0;
  // True: give up, by throwing Interrupted. `interrupted` is called after every batch of a single process.
  // `interrupted_anywhere` is called before each window by all ranks, which have to stop together. Either may be empty.
  std::function<bool()> interrupted{}, interrupted_anywhere{};
  // For windows in turns with another program: takes the last rate (none before the first window) and returns the seconds of a
  // next window, or nothing at the end. Empty: `windows` of `window_seconds`. For a single process.
  std::function<std::optional<double>(std::optional<double>)> next_window{};
};

// Samples per second, one value per window.
struct Rates {
  std::vector<double> windows;
  int64_t batches = 0;  // in all windows, and in the batches before each requested window

  double median() const;
  double min() const;
  double max() const;
  double spread() const;  // (largest - smallest) / median
};

// The work that is measured.
struct Work {
  std::function<int64_t()> batch;     // does one batch and returns its samples
  std::function<void()> settle;       // waits for work that `batch` only started on a device; this time counts
  std::function<void()> warmed_up{};  // between the warm-up and the first window; may be empty
  std::function<void()> rest{};       // called before next_window, while which another program may work; may be empty
  // Ranks that step together need equally many batches in a window: takes this rank's number and returns the largest. Empty
  // for a single process, whose windows end by the clock.
  std::function<int64_t(int64_t)> agree{};
};

// Runs batches for the warm-up and then for each window, at least one per window. Before a requested window (next_window) some
// batches do not count: freed memory may have to return, and a pipeline has filled its ring. ConfigError if no window was
// requested.
Rates measure_rates(const WindowOptions& options, const Work& work);

// "1040 samples/s (980 to 1066 in 5 windows)".
std::string rates_text(const Rates& rates);

}  // namespace welkin::bench
