// SPDX-License-Identifier: Apache-2.0
#include "train/monitor/step_log.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "core/text.h"
#include "observe/log/progress.h"
#include "train/learn/nonfinite_text.h"

namespace welkin::train {
namespace {

std::string six_decimals(double value) {
  if (!std::isfinite(value)) return nonfinite_text(value);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%f", value);
  return text.data();
}

}  // namespace

std::string StepLog::line(int64_t iteration, int64_t epoch, const RunLength& length, double loss, double rate) {
  const double per_step = watch_.seconds() / static_cast<double>(steps_);
  const double left = per_step * static_cast<double>(length.total_steps - iteration);
  const std::string speed = observe::format_rate(since_line_.per_second());
  since_line_.start();
  return cat("Step ", iteration, "/", length.total_steps, ", epoch ", epoch, "/", epochs_of(length),
             ": loss=", six_decimals(loss), ", lr=", rate, ", ", speed, " samples/s, ", observe::format_duration(left), " left");
}

int64_t epochs_of(const RunLength& length) {
  return length.steps_per_epoch > 0 ? (length.total_steps + length.steps_per_epoch - 1) / length.steps_per_epoch : 0;
}

}  // namespace welkin::train
