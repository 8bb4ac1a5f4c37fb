// SPDX-License-Identifier: Apache-2.0
#include "observe/log/progress.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/text.h"

namespace welkin::observe {
namespace {

constexpr double kRateWindowS = 15;

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string bar(double share, int width) {
  const int filled = std::clamp(static_cast<int>(share * width), 0, width);
  return cat("[", std::string(static_cast<size_t>(filled), '#'), std::string(static_cast<size_t>(width - filled), '.'), "]");
}

template <typename... Values>
std::string print(const char* format, Values... values) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

}  // namespace

std::string format_duration(double seconds) {
  if (!(seconds < 1e9)) return "?";
  const auto total = static_cast<long long>(std::llround(std::max(seconds, 0.0)));
  const long long days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60;
  if (days > 0) return print("%lldd %02lld:%02lld", days, hours, minutes);
  if (hours > 0) return print("%lld:%02lld:%02lld", hours, minutes, total % 60);
  return print("%lld:%02lld", minutes, total % 60);
}

std::string format_rate(double value) {
  if (!std::isfinite(value)) return "?";
  if (value >= 999.5) return print("%.0f", value);
  return print("%.*f", value <= 0 ? 0 : std::clamp(2 - static_cast<int>(std::floor(std::log10(value))), 0, 9), value);
}

Progress::Progress(Console& console, ProgressOptions options) : console_(console), options_(std::move(options)) {
  if (!options_.now_s) options_.now_s = steady_seconds;
  last_drawn_s_ = options_.now_s();
  marks_.push_back({last_drawn_s_, 0});
}

Progress::~Progress() { finish(); }

double Progress::rate() const {
  const double elapsed = marks_.back().time_s - marks_.front().time_s;
  return elapsed > 0 ? static_cast<double>(marks_.back().done - marks_.front().done) / elapsed : 0.0;
}

std::string Progress::facts(std::string_view note) const {
  const int width = static_cast<int>(cat(options_.total).size());  // of the total: a growing number would move the bar
  std::string text = options_.total > 0
                         ? print("%*lld/%lld", width, static_cast<long long>(done_), static_cast<long long>(options_.total))
                         : cat(done_);
  text += cat(" ", options_.unit, ", ", format_rate(rate()), "/s");
  if (options_.total > 0 && rate() > 0) {
    const double left_s = static_cast<double>(options_.total - done_) / rate();
    text += cat(", ", format_duration(left_s), " left");
    if (options_.rest > 0) {
      text += cat(", run ", format_duration(left_s + static_cast<double>(options_.rest) / rate() + options_.rest_s), " left");
    }
  }
  if (!note.empty()) text += cat(", ", note);
  return text;
}

void Progress::update(int64_t done, std::string_view note) {
  const double now = options_.now_s();
  done_ = done;
  const double interval = console_.is_terminal() ? options_.terminal_interval_s : options_.plain_interval_s;
  if (now - last_drawn_s_ < interval) return;
  last_drawn_s_ = now;
  marks_.push_back({now, done});
  while (marks_.size() > 2 && marks_[1].time_s < now - kRateWindowS) marks_.pop_front();
  if (console_.is_terminal()) {
    draw_bar(note);
  } else {
    console_.line(cat(options_.title, ": ", facts(note)));
    lines_written_ = true;
  }
}

void Progress::draw_bar(std::string_view note) {
  const std::string text = facts(note);
  if (options_.total <= 0) return console_.status(cat(options_.title, "  ", text));
  const double share = static_cast<double>(done_) / static_cast<double>(options_.total);
  const std::string percent = print("%3.0f%%", std::floor(100 * share));
  const int room = console_.columns() - static_cast<int>(options_.title.size() + percent.size() + text.size()) - 9;
  const std::string drawn = room >= 5 ? cat(bar(share, std::min(room / 5 * 5, 30)), "  ") : "";
  console_.status(cat(options_.title, "  ", drawn, percent, "  ", text));
}

void Progress::finish() {
  if (std::exchange(finished_, true)) return;
  console_.clear_status();
  if (!lines_written_) return;
  marks_.push_back({options_.now_s(), done_});
  console_.line(cat(options_.title, ": ", facts("finished")));
}

}  // namespace welkin::observe
