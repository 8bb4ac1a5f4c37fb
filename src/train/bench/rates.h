// SPDX-License-Identifier: Apache-2.0
// Rates measured in windows of time, and their spread. What every mode of `welkin bench` reports.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace welkin::train::bench {

struct WindowOptions {
  int64_t warmup_batches = 2;  // at least so many, and
  double warmup_seconds = 0.5;
  int64_t windows = 5;  // at least 1
  double window_seconds = 1.0;
};

// Samples per second, one value per window.
struct Rates {
  std::vector<double> windows;

  double median() const;
  double min() const;
  double max() const;
};

// Calls `batch`, which does one batch and returns its samples, until the warm-up and then each window are over.
// `settle` waits for work that `batch` only started (a device's); its time counts. A window has at least one batch.
Rates measure_rates(const WindowOptions& options, const std::function<int64_t()>& batch, const std::function<void()>& settle);

// "1040 samples/s (980 to 1066 in 5 windows)".
std::string rates_text(const Rates& rates);

}  // namespace welkin::train::bench
