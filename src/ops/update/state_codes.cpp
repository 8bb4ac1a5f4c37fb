// SPDX-License-Identifier: Apache-2.0
#include "ops/arithmetic/state_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace welkin::ops {
namespace {

constexpr int kDecades = 7;

// The positive values: 10^(d - 6) times the middles of equal parts of [0.1, 1], with twice as many parts in every decade as in
// the one below; and 1.
std::vector<double> magnitudes(int parts_of_least_decade) {
  std::vector<double> values;
  for (int decade = 0; decade < kDecades; ++decade) {
    const int parts = parts_of_least_decade << decade;
    for (int part = 0; part < parts; ++part) {
      values.push_back(std::pow(10.0, decade + 1 - kDecades) * (0.1 + 0.9 * (part + 0.5) / parts));
    }
  }
  values.push_back(1);
  return values;
}

float float_of_bits(int32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

int32_t bits_of_float(float value) {
  int32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// `from_zero`: the values from zero on, ascending.
void fill_cells(CodeTable& table, const std::vector<float>& from_zero) {
  const auto border = [&](size_t code) {
    return code + 1 < from_zero.size() ? 0.5F * (from_zero[code] + from_zero[code + 1]) : std::numeric_limits<float>::max();
  };
  size_t code = 0;
  for (int32_t cell = 0; cell < kNumCells; ++cell) {
    const float least = float_of_bits((kFirstCell + cell) << 16);
    while (least > border(code)) ++code;
    const int32_t bits = bits_of_float(border(code));
    const int32_t low_half = bits >> 16 == kFirstCell + cell ? bits & 0xffff : 0xffff;
    table.cell[cell] = static_cast<int32_t>(code) | low_half << 8;
  }
}

CodeTable table_of(bool has_sign) {
  std::vector<float> from_zero{0};
  for (const double value : magnitudes(has_sign ? 1 : 2)) from_zero.push_back(static_cast<float>(value));
  CodeTable table{};
  table.most_negative = has_sign ? static_cast<int32_t>(from_zero.size()) - 2 : 0;  // -1 has no code
  table.zero = table.most_negative;
  for (int32_t code = 0; code < kNumCodes; ++code) {
    const int32_t away = code - table.zero;
    const float size = from_zero[static_cast<size_t>(std::abs(away))];
    table.value[code] = away < 0 ? -size : size;
  }
  fill_cells(table, from_zero);
  return table;
}

}  // namespace

const CodeTable& signed_codes() {
  static const CodeTable table = table_of(/*has_sign=*/true);
  return table;
}

const CodeTable& unsigned_codes() {
  static const CodeTable table = table_of(/*has_sign=*/false);
  return table;
}

}  // namespace welkin::ops
