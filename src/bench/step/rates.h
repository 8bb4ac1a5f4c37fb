// SPDX-License-Identifier: Apache-2.0
// Rates measured in windows of time, and their spread. What every mode of `welkin bench` reports.
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
  // Whether to give up, by throwing Interrupted: asked after every batch of a process alone; of several ranks, which have to stop
  // at the same place, before each window by all of them. Either may be empty.
  std::function<bool()> interrupted{}, interrupted_anywhere{};
  // Windows in turns with another program: given the rate of the last one (none before the first), the seconds of the next, or
  // nothing where there is no other. Empty: `windows` of `window_seconds`. For a process alone.
  std::function<std::optional<double>(std::optional<double>)> next_window{};
};

// Samples per second, one value per window.
struct Rates {
  std::vector<double> windows;
  int64_t batches = 0;  // in all windows, and before each that was asked for

  double median() const;
  double min() const;
  double max() const;
  double spread() const;  // (largest - smallest) / median
};

// What is measured.
struct Work {
  std::function<int64_t()> batch;     // does one and returns its samples
  std::function<void()> settle;       // waits for work that `batch` only started (a device's); its time counts
  std::function<void()> warmed_up{};  // between the warm-up and the first window; may be empty
  std::function<void()> rest{};       // before next_window is asked, for which another program may work; may be empty
  // Ranks that step together do equally many batches in a window: given what this rank wants, the largest that any wants. Empty
  // for a process alone, whose windows end by the clock.
  std::function<int64_t(int64_t)> agree{};
};

// Batches until the warm-up and then each window are over. A window has at least one batch. Before one that was asked for there
// are batches that do not count: what was free may have to be brought back, and a pipeline has filled its ring. ConfigError where
// none was asked for.
Rates measure_rates(const WindowOptions& options, const Work& work);

// "1040 samples/s (980 to 1066 in 5 windows)".
std::string rates_text(const Rates& rates);

}  // namespace welkin::bench
