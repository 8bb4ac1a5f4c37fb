// SPDX-License-Identifier: Apache-2.0
#include "train/monitor/lr_range.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "observe/plot/plot.h"

namespace welkin::train {
namespace {

constexpr double kMemory = 0.98;    // of the exponential average, corrected for its start
constexpr double kDiverged = 4;     // times the smallest smoothed loss
constexpr size_t kLastSkipped = 5;  // last steps, in which the loss diverges
constexpr size_t kFewest = 8;       // points below which none is skipped

class RisingRate : public LrSchedule {
 public:
  explicit RisingRate(const LrRangeOptions& options) : options_(options) {}
  double rate(int64_t steps_done) const override {
    const double share = static_cast<double>(steps_done) / static_cast<double>(options_.steps - 1);
    return options_.low * std::pow(options_.high / options_.low, share);
  }

 private:
  LrRangeOptions options_;
};

[[noreturn]] void refuse_range(const std::string& text, const std::string& why) {
  throw ConfigError("command line", cat(why, ": --find_lr=", text), "Write for instance --find_lr=low=1e-7,high=10,steps=100");
}

template <typename Number>
void read_number(const std::string& text, std::string_view value, Number& into) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
  if (error != std::errc() || end != value.data() + value.size()) refuse_range(text, "this is no range of rates");
}

void read_part(const std::string& text, const std::string& part, LrRangeOptions& options) {
  const size_t equals = part.find('=');
  const std::string name = part.substr(0, equals);
  const std::string_view value = equals == std::string::npos ? std::string_view() : std::string_view(part).substr(equals + 1);
  if (name == "low") return read_number(text, value, options.low);
  if (name == "high") return read_number(text, value, options.high);
  if (name == "steps") return read_number(text, value, options.steps);
  refuse_range(text, "this is no range of rates");
}

std::string lr_number(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

// The largest finite smoothed loss: the top of the picture.
double highest_shown(const std::vector<LrPoint>& points) {
  double highest = -std::numeric_limits<double>::infinity();
  for (const LrPoint& point : points) {
    if (std::isfinite(point.smoothed)) highest = std::max(highest, point.smoothed);
  }
  return highest;
}

}  // namespace

LrRangeOptions parse_lr_range(const std::string& text) {
  LrRangeOptions options;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    read_part(text, text.substr(at, end - at), options);
    at = end + 1;
  }
  if (!(options.low > 0) || !(options.high > options.low) || !std::isfinite(options.high)) {
    refuse_range(text, "the rates must be positive and rise");
  }
  if (options.steps < 10 || options.steps > 1'000'000) refuse_range(text, "the test has 10 to 1000000 steps");
  return options;
}

LrSchedulePtr rising_schedule(const LrRangeOptions& options) { return std::make_unique<RisingRate>(options); }

bool LrRange::add(double rate, double loss) {
  average_ = kMemory * average_ + (1 - kMemory) * loss;
  const double smoothed = average_ / (1 - std::pow(kMemory, static_cast<double>(points_.size() + 1)));
  points_.push_back({rate, loss, smoothed});
  best_ = points_.size() == 1 ? smoothed : std::min(best_, smoothed);
  return std::isfinite(smoothed) && smoothed <= kDiverged * best_;
}

std::optional<LrSuggestion> LrRange::suggestion() const {
  std::vector<LrPoint> points;
  for (const LrPoint& point : points_) {
    if (std::isfinite(point.smoothed)) points.push_back(point);
  }
  if (points.size() >= kFewest + kLastSkipped) {
    points.erase(points.end() - kLastSkipped, points.end());
    points.erase(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(points_.size() / 10));
  }
  double steepest = 0;
  LrSuggestion found;
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    const double slope = (points[i + 1].smoothed - points[i].smoothed) / std::log(points[i + 1].rate / points[i].rate);
    if (slope >= steepest) continue;
    steepest = slope;
    found.steepest = points[i].rate;
  }
  if (steepest == 0) return {};
  found.minimum = std::min_element(points.begin(), points.end(), [](const LrPoint& a, const LrPoint& b) {
                    return a.smoothed < b.smoothed;
                  })->rate;
  return found;
}

std::string LrRange::csv() const {
  std::string text = "step,lr,loss,smoothed_loss\n";
  for (size_t i = 0; i < points_.size(); ++i) {
    text +=
        cat(i + 1, ",", lr_number(points_[i].rate), ",", lr_number(points_[i].loss), ",", lr_number(points_[i].smoothed), "\n");
  }
  return text;
}

std::string LrRange::svg() const {
  const double highest = highest_shown(points_);
  observe::Curve loss{.label = "loss", .markers = false}, smoothed{.label = "smoothed", .markers = false};
  for (const LrPoint& point : points_) {
    loss.x.push_back(point.rate);
    loss.y.push_back(point.loss <= highest ? point.loss : std::numeric_limits<double>::quiet_NaN());
    smoothed.x.push_back(point.rate);
    smoothed.y.push_back(point.smoothed);
  }
  observe::LinePlot plot{.title = "Learning rate range test",
                         .x = {.title = "learning rate", .scale = observe::PlotScale::Log},
                         .y = {.title = "training loss"},
                         .curves = {loss, smoothed}};
  if (const auto found = suggestion()) {
    double low = std::numeric_limits<double>::infinity();
    for (const double y : smoothed.y) low = std::isfinite(y) ? std::min(low, y) : low;
    const std::string label = cat("steepest: ", lr_number(std::strtod(cat(found->steepest).c_str(), nullptr)));
    plot.curves.push_back(
        {.label = label, .x = {found->steepest, found->steepest}, .y = {low, highest}, .dashed = true, .markers = false});
  }
  return observe::svg(plot);
}

}  // namespace welkin::train
