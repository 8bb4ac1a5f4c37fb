// SPDX-License-Identifier: Apache-2.0
#include "config/schema/early_stopping.h"

#include <charconv>
#include <cmath>

#include "core/text.h"

namespace welkin::config {
namespace {

template <typename Number>
std::optional<Number> number_in(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace

std::optional<EarlyStopping> parse_early_stopping(const std::vector<std::string>& entries, std::string& problem) {
  if (entries.empty()) return {};
  if (entries.size() < 2 || entries.size() > 3 || entries[0].empty()) {
    problem = "it is a metric, a number of validations, and optionally the least improvement";
    return {};
  }
  const auto patience = number_in<int64_t>(entries[1]);
  if (!patience || *patience < 1) {
    problem = cat("patience is a whole number of at least 1, not ", entries[1]);
    return {};
  }
  const auto min_delta = entries.size() == 3 ? number_in<double>(entries[2]) : std::optional<double>(0);
  if (!min_delta || !(*min_delta >= 0) || !std::isfinite(*min_delta)) {
    problem = cat("min_delta is a number of at least 0, not ", entries[2]);
    return {};
  }
  return EarlyStopping{.metric = entries[0], .patience = *patience, .min_delta = *min_delta};
}

}  // namespace welkin::config
