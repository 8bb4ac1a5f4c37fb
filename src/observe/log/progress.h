// SPDX-License-Identifier: Apache-2.0
// Progress of a loop of known length: a bar with rate and remaining time on a terminal, an occasional plain line elsewhere.
// update() costs one clock read unless it is time to draw. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "observe/log/console.h"

namespace welkin::observe {

struct ProgressOptions {
  std::string title{};           // "epoch 3"
  int64_t total = 0;             // in units; 0: unknown, then without bar, share and remaining time
  std::string unit = "samples";  // what is counted
  // Units and seconds of the run after this loop: with them the run's remaining time is shown, too.
  int64_t rest = 0;
  double rest_s = 0;
  double terminal_interval_s = 0.1;
  double plain_interval_s = 30;     // between lines if there is no terminal
  std::function<double()> now_s{};  // seconds of a monotonic clock; empty: the system's
};

class Progress {
 public:
  // `console` must outlive it.
  Progress(Console& console, ProgressOptions options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of `total` units; `note` appears at the end ("loss 0.0123").
  void update(int64_t done, std::string_view note = {});

  // Removes the bar. Without a terminal it writes a last line if there was one before.
  void finish();

 private:
  double rate() const;  // units per second over the last seconds
  std::string facts(std::string_view note) const;
  void draw_bar(std::string_view note);

  Console& console_;
  ProgressOptions options_;
  struct Mark {
    double time_s;
    int64_t done;
  };
  std::deque<Mark> marks_;  // of the last kRateWindowS seconds
  double last_drawn_s_;
  int64_t done_ = 0;
  bool lines_written_ = false;
  bool finished_ = false;
};

// "0:07", "12:34", "3:04:05", "2d 03:04".
std::string format_duration(double seconds);
// Three significant digits: "0.0123", "1.23", "12.3", "1234".
std::string format_rate(double value);

}  // namespace welkin::observe
