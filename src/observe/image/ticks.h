// SPDX-License-Identifier: Apache-2.0
// Ticks at round numbers for axes.
#pragma once

#include <string>
#include <vector>

namespace welkin::observe::image {

struct Tick {
  double value = 0;
  std::string label;  // empty: a small mark between labelled ones
};

// Multiples of 1, 2 or 5 times a power of ten inside [low, high], at most `most` of them; all labels with the same number of
// decimals.
std::vector<Tick> linear_ticks(double low, double high, int most);

// 1, 2 and 5 times powers of ten inside [low, high], 0 < low, if these are at most `most`; else the powers alone, not all
// labelled.
std::vector<Tick> log_ticks(double low, double high, int most);

// Four significant digits, without needless zeros: "0.01234", "1.5e-07".
std::string short_number(double value);

}  // namespace welkin::observe::image
