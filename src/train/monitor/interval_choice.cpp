// SPDX-License-Identifier: Apache-2.0
#include "train/monitor/interval_choice.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::train {
namespace {

constexpr double kNewShare = 0.3;  // weight of the newest measurement in a mean
constexpr double kNews = 1.2;      // ratio of two intervals that is worth a log line

void blend(double& mean, double measured) {
  if (measured > 0) mean = mean > 0 ? mean + kNewShare * (measured - mean) : measured;
}

double to_two_digits(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

std::string seconds_text(double seconds) { return seconds > 0 ? cat(to_two_digits(seconds), " s") : "0 s"; }

double time_at(const nlohmann::json& times, const char* key) {
  const double value = times.at(key).get<double>();
  return std::isfinite(value) && value > 0 ? value : 0;
}

}  // namespace

void write_times(const std::filesystem::path& file, const MeasuredTimes& times) {
  const nlohmann::ordered_json json = {
      {"step_s", times.step_s}, {"held_s", times.held_s}, {"written_s", times.written_s}, {"restart_s", times.restart_s}};
  write_file_atomically(file, json.dump(2) + "\n");
}

std::optional<MeasuredTimes> read_times(const std::filesystem::path& file) {
  constexpr uint64_t kLargest = 1 << 16;
  try {
    const auto json = nlohmann::json::parse(read_file(file, kLargest));
    return MeasuredTimes{.step_s = time_at(json, "step_s"),
                         .held_s = time_at(json, "held_s"),
                         .written_s = time_at(json, "written_s"),
                         .restart_s = time_at(json, "restart_s")};
  } catch (const DataError&) {
    return {};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

void IntervalChoice::add(const MeasuredTimes& measured) {
  blend(times_.step_s, measured.step_s);
  blend(times_.held_s, measured.held_s);
  blend(times_.written_s, measured.written_s);
  blend(times_.restart_s, measured.restart_s);
}

FailureCosts IntervalChoice::costs() const {
  return {.mtbf_s = mtbf_s_, .held_s = times_.held_s, .written_s = times_.written_s, .restart_s = times_.restart_s};
}

int64_t IntervalChoice::steps() const {
  if (!is_known()) return kFirstSteps;
  const double seconds = std::max(daly_interval_s(costs()), times_.written_s - times_.held_s);
  constexpr double kMost = 1e12;
  return static_cast<int64_t>(std::clamp(std::round(seconds / times_.step_s), 1.0, kMost));
}

double IntervalChoice::goodput() const {
  return is_known() ? welkin::goodput(costs(), static_cast<double>(steps()) * times_.step_s) : 0;
}

std::string IntervalChoice::news() {
  if (!is_known()) return {};
  const int64_t now = steps();
  const double change = static_cast<double>(now) / static_cast<double>(std::max<int64_t>(told_steps_, 1));
  if (told_steps_ > 0 && change < kNews && change > 1 / kNews) return {};
  told_steps_ = now;
  return cat("Checkpoint interval: ", now, now == 1 ? " step" : " steps", " (",
             seconds_text(static_cast<double>(now) * times_.step_s), "). A checkpoint holds training for ",
             seconds_text(times_.held_s), ", a failure comes every ", seconds_text(mtbf_s_), ", expected goodput ",
             std::round(goodput() * 1000) / 10, " %");
}

}  // namespace welkin::train
