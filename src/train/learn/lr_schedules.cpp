// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "train/learn/lr_schedule.h"

namespace welkin::train {
namespace {

bool is_unet_tutorial(const config::RunConfig& config) {
  return config.tutorial == config::Tutorial::Sc21 || config.tutorial == config::Tutorial::Sc22;
}

double batch_ratio(const config::RunConfig& config) {
  return static_cast<double>(config.loop.global_batch_size) / static_cast<double>(config.loop.base_batch_size);
}

// 1 at progress 0, 0 at progress 1.
double half_cosine(double progress) { return 0.5 * (1 + std::cos(std::numbers::pi * progress)); }

// A schedule from a function: each built-in one is a formula, not a class.
class Formula : public LrSchedule {
 public:
  explicit Formula(std::function<double(int64_t)> formula) : formula_(std::move(formula)) {}
  double rate(int64_t steps_done) const override { return formula_(steps_done); }

 private:
  std::function<double(int64_t)> formula_;
};

LrSchedulePtr formula(std::function<double(int64_t)> function) { return std::make_unique<Formula>(std::move(function)); }

// The share of the way from warmup_start_lr to the peak at update k of a ramp of `ramp` updates.
double ramp_share(config::WarmupForm form, int64_t k, int64_t ramp) {
  const auto steps = static_cast<double>(ramp);
  if (form == config::WarmupForm::Log) return std::log(static_cast<double>(k + 1)) / std::log(std::max(2.0, steps));
  return static_cast<double>(k + 1) / steps;
}

// The ramp, then `decay(progress)` in [0, 1] between peak and end_lr. `lead` is added to the step count in the progress.
LrSchedulePtr ramp_then(const config::RunConfig& config, const RunLength& length, int64_t lead, double (*decay)(double)) {
  const double peak = peak_lr(config);
  const double end = config.schedule.end_lr;
  const double start = config.schedule.warmup_start_lr;
  const config::WarmupForm form = config.schedule.warmup_form;
  const int64_t ramp = ramp_steps(config);
  const auto steps = static_cast<double>(std::max<int64_t>(1, length.total_steps - ramp));
  return formula([=](int64_t k) {
    if (k + lead < ramp) {
      if (start == 0 && form == config::WarmupForm::Linear) return peak * static_cast<double>(k + 1) / static_cast<double>(ramp);
      return start + (peak - start) * ramp_share(form, k, ramp);
    }
    const double progress = std::min(1.0, static_cast<double>(k + lead - ramp) / steps);
    return end + (peak - end) * decay(progress);
  });
}

std::vector<std::pair<double, double>> parse_table(const std::vector<double>& table) {
  if (table.empty() || table.size() % 2 != 0) {
    throw ConfigError("schedule",
                      cat("the table is empty or not made of pairs: lr_schedule.table has ", table.size(), " numbers"),
                      "Give pairs: step, rate, step, rate");
  }
  std::vector<std::pair<double, double>> points;
  for (size_t i = 0; i < table.size(); i += 2) {
    if (!points.empty() && table[i] <= points.back().first) {
      throw ConfigError("schedule",
                        cat("the steps of the table do not rise: step=", table[i], " after step=", points.back().first),
                        "Sort lr_schedule.table by step");
    }
    points.emplace_back(table[i], table[i + 1]);
  }
  return points;
}

double interpolate(const std::vector<std::pair<double, double>>& points, double step) {
  const auto after = std::find_if(points.begin(), points.end(), [step](const auto& point) { return point.first > step; });
  if (after == points.begin()) return points.front().second;
  if (after == points.end()) return points.back().second;
  const auto& [x0, y0] = *(after - 1);
  const auto& [x1, y1] = *after;
  return y0 + (y1 - y0) * (step - x0) / (x1 - x0);
}

}  // namespace

double peak_lr(const config::RunConfig& config) {
  const double start = config.schedule.start_lr;
  if (config.schedule.scaling == config::RateScaling::Sqrt) return start * std::sqrt(batch_ratio(config));
  if (config.schedule.scaling == config::RateScaling::Linear) return start * batch_ratio(config);
  return start;
}

int64_t ramp_steps(const config::RunConfig& config) {
  const bool stretched = batch_ratio(config) > 1 && config.schedule.scaling != config::RateScaling::None;
  return is_unet_tutorial(config) && !stretched ? 0 : config.schedule.warmup_steps;
}

LrSchedulePtr constant_schedule(const config::RunConfig& config, const RunLength& length) {
  return ramp_then(config, length, 0, [](double) { return 1.0; });
}

LrSchedulePtr linear_schedule(const config::RunConfig& config, const RunLength& length) {
  return ramp_then(config, length, 0, [](double progress) { return 1 - progress; });
}

LrSchedulePtr cosine_schedule(const config::RunConfig& config, const RunLength& length) {
  return ramp_then(config, length, is_unet_tutorial(config) ? 1 : 0, half_cosine);
}

LrSchedulePtr table_schedule(const config::RunConfig& config, const RunLength&) {
  return formula(
      [points = parse_table(config.schedule.table)](int64_t k) { return interpolate(points, static_cast<double>(k)); });
}

LrSchedulePtr unet_tutorial_schedule(const config::RunConfig& config, const RunLength& length) {
  const double peak = peak_lr(config);
  const double end = config.schedule.end_lr;
  const int64_t ramp = ramp_steps(config);
  const int64_t counted = config.loop.num_epochs * (length.samples / config.loop.global_batch_size);
  const auto steps = static_cast<double>(counted > 0 ? counted : length.total_steps);  // a length in steps is ours
  return formula([=](int64_t k) {
    const int64_t i = k + 1;
    if (i < ramp) return peak * static_cast<double>(i) / static_cast<double>(ramp);
    return end + (peak - end) * half_cosine(static_cast<double>(i - ramp) / steps);
  });
}

LrSchedulePtr vit_tutorial_schedule(const config::RunConfig& config, const RunLength& length) {
  const double peak = peak_lr(config);
  const int64_t ramp = config.schedule.warmup_steps;
  const auto steps = static_cast<double>(config.loop.num_iters > 0 ? config.loop.num_iters : length.total_steps);
  return formula([=](int64_t k) {
    const double cosine = half_cosine(static_cast<double>(k) / steps);
    return peak * (ramp > 0 ? std::min(static_cast<double>(k + 1) / static_cast<double>(ramp), cosine) : cosine);
  });
}

}  // namespace welkin::train
