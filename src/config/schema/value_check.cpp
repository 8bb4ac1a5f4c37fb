// SPDX-License-Identifier: Apache-2.0
// Checks one value against its row of the schema: choices, range, length.
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "config/schema/value.h"
#include "config/yaml/yaml_scalar.h"
#include "core/printable.h"
#include "core/text.h"

namespace welkin::config {
namespace {

std::string bound_text(double bound) {
  return std::floor(bound) == bound && std::abs(bound) < 1e15 ? std::to_string(static_cast<int64_t>(bound)) : float_text(bound);
}

std::optional<std::string> check_number(double value, const Range& range) {
  if (!std::isfinite(value)) return "is not finite";
  if (range.open_min ? value <= range.min : value < range.min) {
    return cat(range.open_min ? "must be above " : "must be at least ", bound_text(range.min));
  }
  if (range.open_max ? value >= range.max : value > range.max) {
    return cat(range.open_max ? "must be below " : "must be at most ", bound_text(range.max));
  }
  return {};
}

// Checks the value of a field; a field at its default is never wrong (empty names, 0 for "not given").
struct Checker {
  const Key& key;

  std::optional<std::string> operator()(bool) const { return {}; }
  std::optional<std::string> operator()(int64_t value) const { return check_number(static_cast<double>(value), key.range); }
  std::optional<std::string> operator()(uint64_t value) const { return check_number(static_cast<double>(value), key.range); }
  std::optional<std::string> operator()(double value) const { return check_number(value, key.range); }
  std::optional<std::string> operator()(const std::string& value) const {
    if (!is_utf8(value)) return "is no UTF-8";  // checkpoints keep the configuration as JSON
    return check_choice(value, key);
  }
  std::optional<std::string> operator()(const Checkpointing&) const { return {}; }
  std::optional<std::string> operator()(const SpatialRanks&) const { return {}; }
  std::optional<std::string> operator()(const MicroBatchSize& value) const { return (*this)(value.samples); }
  std::optional<std::string> operator()(const CheckpointInterval& value) const { return (*this)(value.steps); }
  std::optional<std::string> operator()(const StepCounts& value) const {
    return value.numbers.empty() ? std::optional<std::string>("is empty") : (*this)(value.numbers);
  }
  template <typename T>
  std::optional<std::string> operator()(const std::optional<T>& value) const {
    return value ? (*this)(*value) : std::nullopt;
  }
  template <typename T>
  std::optional<std::string> operator()(const std::vector<T>& values) const {
    if (key.size > 0 && static_cast<int64_t>(values.size()) != key.size) {
      return cat("must have ", key.size, " elements, has ", values.size());
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (auto problem = (*this)(values[i])) return cat("element ", i, " ", *problem);
    }
    return {};
  }
  template <typename T>
  requires std::is_enum_v<T> std::optional<std::string>
  operator()(T) const { return {}; }
};

// pattern:REGEX stands for pattern: and any text.
bool is_choice(std::string_view text, std::string_view choice) {
  const size_t colon = choice.find(':');
  return colon == std::string_view::npos ? text == choice : text.starts_with(choice.substr(0, colon + 1));
}

bool may_be_null(const Key& key) {
  return key.null_is_first || std::holds_alternative<Accessor<std::optional<Loader>>>(key.field) ||
         std::holds_alternative<Accessor<std::optional<Compat>>>(key.field);
}

}  // namespace

std::optional<std::string> check_choice(std::string_view text, const Key& key) {
  if (text.empty()) return "is empty";
  const auto allowed = split(key.choices, '|');
  if (allowed.empty() || std::any_of(allowed.begin(), allowed.end(), [&](auto choice) { return is_choice(text, choice); }))
    return {};
  return cat("is none of ", join(allowed, ", "));
}

std::optional<std::string> unknown_choice(const Key& key, const YamlNode& node) {
  const bool is_text = node.kind != YamlKind::Bool && node.kind != YamlKind::Sequence && node.kind != YamlKind::Mapping;
  if (enum_names(key.field).empty() || !is_text || (node.kind == YamlKind::Null && may_be_null(key))) return {};
  std::string name = node.kind == YamlKind::Null ? std::string() : node.text;
  return check_choice(name, key) ? std::optional(std::move(name)) : std::nullopt;
}

std::optional<std::string> check(RunConfig& config, RunConfig& defaults, const Key& key) {
  return std::visit(
      [&](auto accessor) -> std::optional<std::string> {
        const auto& value = accessor(config);
        if (value == accessor(defaults)) return {};
        return Checker{key}(value);
      },
      key.field);
}

}  // namespace welkin::config
