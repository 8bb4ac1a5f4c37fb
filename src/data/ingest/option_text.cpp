// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/option_text.h"

#include <charconv>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data::ingest {
namespace {

constexpr int64_t kLargestExtent = int64_t{1} << 31;

// Numbers between separators out of "x+"; empty when the text is anything else.
struct NumberList {
  std::vector<int64_t> numbers;
  std::string separators;
};

NumberList split_numbers(std::string_view text) {
  NumberList list;
  while (true) {
    int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc{} || number < 0 || number > kLargestExtent) return {};
    list.numbers.push_back(number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) return list;
    if (text.front() != 'x' && text.front() != '+') return {};
    list.separators += text.front();
    text.remove_prefix(1);
  }
}

}  // namespace

std::vector<VariableChoice> parse_choices(const std::vector<std::string>& texts) {
  std::vector<VariableChoice> choices;
  for (const auto& text : texts) {
    const size_t colon = text.find(':');
    VariableChoice choice{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
    if (choice.source.empty() || (colon != std::string::npos && choice.name.empty())) {
      throw ConfigError("ingest", cat("not a variable: text=", text), "Write it like t2m, or 2t:temperature to rename");
    }
    choices.push_back(std::move(choice));
  }
  return choices;
}

Crop parse_crop(std::string_view text) {
  const NumberList list = split_numbers(text);
  const auto& n = list.numbers;
  const bool plain = list.separators == "x", placed = list.separators == "x++";
  if ((plain || placed) && n[0] > 0 && n[1] > 0) return {n[0], n[1], placed ? n[2] : 0, placed ? n[3] : 0};
  throw ConfigError("ingest", cat("not a crop: text=", text), "Write it like 32x48, or 32x48+1+0 with the first row and column");
}

std::vector<int64_t> parse_shape(std::string_view text) {
  const NumberList list = split_numbers(text);
  const bool sane = !list.numbers.empty() && list.separators.find('+') == std::string::npos;
  if (sane) return list.numbers;
  throw ConfigError("ingest", cat("not a shape: text=", text), "Write it like 1x64x512");
}

}  // namespace welkin::data::ingest
