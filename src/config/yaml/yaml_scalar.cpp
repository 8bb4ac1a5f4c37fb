// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/yaml_scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace welkin::config {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  return text;
}

size_t count_digits(std::string_view text, size_t from) {
  size_t end = from;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - from;
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_decimal(std::string_view text) {
  text = without_sign(text);
  const size_t whole = count_digits(text, 0);
  size_t at = whole;
  size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    fraction = count_digits(text, at + 1);
    at += 1 + fraction;
  }
  if (whole + fraction == 0) return false;
  if (at == text.size()) return true;
  if (text[at] != 'e' && text[at] != 'E') return false;
  ++at;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
  const size_t exponent = count_digits(text, at);
  return exponent > 0 && at + exponent == text.size();
}

bool read_integer(std::string_view text, int base, int64_t& value) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

double read_double(std::string_view text) {
  const double sign = text[0] == '-' ? -1.0 : 1.0;
  const std::string_view digits = without_sign(text);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  // from_chars leaves the value alone beyond the range: it is zero for a negative exponent or a number below one, else infinite.
  if (error == std::errc::result_out_of_range) {
    const size_t exponent = digits.find_first_of("eE");
    const bool underflow =
        exponent == std::string_view::npos ? digits[0] == '0' || digits[0] == '.' : digits[exponent + 1] == '-';
    value = underflow ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return sign * value;
}

void set_number(YamlNode& node, YamlKind kind, double number) {
  node.kind = kind;
  node.number = number;
}

bool set_integer(YamlNode& node, std::string_view text, int base) {
  if (!read_integer(text, base, node.integer)) return false;
  set_number(node, YamlKind::Int, static_cast<double>(node.integer));
  return true;
}

bool set_special_float(YamlNode& node, std::string_view text) {
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) {
    set_number(node, YamlKind::Float, std::numeric_limits<double>::quiet_NaN());
    return true;
  }
  if (is_one_of(without_sign(text), {".inf", ".Inf", ".INF"})) {
    set_number(node, YamlKind::Float, (text[0] == '-' ? -1.0 : 1.0) * std::numeric_limits<double>::infinity());
    return true;
  }
  return false;
}

}  // namespace

YamlNode type_scalar(std::string_view text) {
  YamlNode node;
  node.kind = YamlKind::String;
  node.text = text;
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) {
    node.kind = YamlKind::Null;
  } else if (is_one_of(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) {
    node.kind = YamlKind::Bool;
    node.boolean = text[0] == 't' || text[0] == 'T';
  } else if (text.starts_with("0x") || text.starts_with("0o")) {
    if (without_sign(text.substr(2)).size() == text.size() - 2) set_integer(node, text.substr(2), text[1] == 'x' ? 16 : 8);
  } else if (is_decimal(text)) {
    const bool integral = count_digits(without_sign(text), 0) == without_sign(text).size();
    if (!integral || !set_integer(node, text, 10)) set_number(node, YamlKind::Float, read_double(text));
  } else {
    set_special_float(node, text);
  }
  return node;
}

std::string float_text(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value < 0 ? "-.inf" : ".inf";
  char buffer[40];
  // Python's repr: positional from 1e-4 up to below 1e16, with an exponent of at least two digits elsewhere; the shortest digits
  // in both.
  const double size = std::abs(value);
  const auto format = size == 0 || (size >= 1e-4 && size < 1e16) ? std::chars_format::fixed : std::chars_format::scientific;
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, format);
  std::string text(buffer, error == std::errc{} ? end : buffer);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace welkin::config
