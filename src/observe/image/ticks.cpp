// SPDX-License-Identifier: Apache-2.0
#include "observe/image/ticks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace welkin::observe::image {
namespace {

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

// The smallest of 1, 2, 5 times a power of ten with at most `most` multiples in [low, high].
double round_step(double low, double high, int most) {
  double power = std::pow(10.0, std::floor(std::log10((high - low) / most)));
  for (;; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double step = factor * power;
      if (std::floor(high / step + 1e-9) - std::ceil(low / step - 1e-9) + 1 <= most) return step;
    }
  }
}

// "1e-05" -> "1e-5", "1e+06" -> "1e6"
std::string short_exponent(std::string text) {
  const size_t at = text.find('e');
  if (at == std::string::npos) return text;
  const bool negative = text[at + 1] == '-';
  size_t digits = at + 2;
  while (digits + 1 < text.size() && text[digits] == '0') ++digits;
  return text.substr(0, at + 1) + (negative ? "-" : "") + text.substr(digits);
}

std::string tick_label(double value, double step, double largest) {
  const int step_power = static_cast<int>(std::floor(std::log10(step) + 1e-9));
  if (largest >= 1e6 || largest < 1e-3) {
    const int value_power = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
    return value == 0 ? "0" : short_exponent(formatted("%.*e", std::clamp(value_power - step_power, 0, 12), value));
  }
  return formatted("%.*f", std::clamp(-step_power, 0, 12), value);
}

}  // namespace

std::vector<Tick> linear_ticks(double low, double high, int most) {
  const double largest = std::max(std::abs(low), std::abs(high));
  // Below these widths neighbouring ticks would be the same double.
  if (!(high - low > std::max(1e-12 * largest, 1e-250)) || !std::isfinite(high - low) || most < 2) return {};
  const double step = round_step(low, high, most);
  const double slack = 1e-9 * (high - low);
  std::vector<Tick> ticks;
  for (double index = std::ceil((low - slack) / step); index * step <= high + slack && static_cast<int>(ticks.size()) < most;
       ++index) {
    const double value = index == 0 ? 0.0 : index * step;  // avoids "-0"
    ticks.push_back({value, tick_label(value, step, largest)});
  }
  return ticks;
}

std::vector<Tick> log_ticks(double low, double high, int most) {
  if (!(0 < low && low < high) || !std::isfinite(high) || most < 2) return {};
  const int first = static_cast<int>(std::ceil(std::log10(low) - 1e-9)),
            last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
  std::vector<Tick> ticks;
  for (int power = first - 1; power <= last; ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, power);
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push_back({value, short_number(value)});
    }
  }
  if (ticks.size() < 2) return linear_ticks(low, high, most);
  if (static_cast<int>(ticks.size()) <= most) return ticks;
  ticks.clear();
  const int stride = (last - first) / most + 1;
  for (int power = first; power <= last; ++power) {
    const double value = std::pow(10.0, power);
    ticks.push_back({value, (power - first) % stride == 0 ? short_exponent(formatted("%.0e", value)) : ""});
  }
  return ticks;
}

std::string short_number(double value) { return short_exponent(formatted("%.4g", value)); }

}  // namespace welkin::observe::image
