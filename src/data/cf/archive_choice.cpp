// SPDX-License-Identifier: Apache-2.0
#include "data/cf/archive_choice.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> names;
  for (size_t begin = 0;;) {
    const auto end = text.find('|', begin);
    names.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return names;
    begin = end + 1;
  }
}

}  // namespace

VariableRequest parse_variable_request(const std::string& text) {
  VariableRequest request;
  const auto colon = text.find(':');
  if (colon != std::string::npos) request.new_name = text.substr(colon + 1);
  const std::string source = text.substr(0, colon);
  const auto at = source.find('@');
  request.others = names_of(source.substr(0, at));
  bool good = std::ranges::count(request.others, "") == 0 && (colon == std::string::npos || !request.new_name.empty());
  request.name = request.others.front();
  request.others.erase(request.others.begin());
  if (at != std::string::npos) {
    double level = 0;
    const char* end_of_text = source.data() + source.size();
    const auto [end, problem] = std::from_chars(source.data() + at + 1, end_of_text, level);
    good = good && problem == std::errc() && end == end_of_text && std::isfinite(level);
    request.level = level;
  }
  if (good) return request;
  throw ConfigError("data", cat("no variable: variables=", text),
                    "Write for instance 2m_temperature, geopotential, geopotential@500, tas:t2m or 2m_temperature|tas");
}

std::string level_text(double level) {
  if (level == std::floor(level) && std::abs(level) < 1e9) return std::to_string(static_cast<int64_t>(level));
  return cat(level);
}

std::string levels_text(const std::vector<double>& levels) {
  std::vector<std::string> texts;
  for (const double level : levels) texts.push_back(level_text(level));
  return join(texts, " ");
}

std::string level_channel_name(const std::string& name, double level, bool on_pressure, size_t num_levels) {
  if (on_pressure) return name + level_text(level);
  return num_levels > 1 ? name + "_" + level_text(level) : name;
}

std::optional<int64_t> level_index(const std::vector<double>& levels, double wanted) {
  const auto found = std::ranges::find_if(
      levels, [&](double level) { return std::abs(level - wanted) < 1e-6 * std::max(1.0, std::abs(wanted)); });
  return found == levels.end() ? std::nullopt : std::optional<int64_t>(found - levels.begin());
}

}  // namespace welkin::data
