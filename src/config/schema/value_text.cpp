// SPDX-License-Identifier: Apache-2.0
// Writes one value: as YAML, as Python prints it, and the name of its type.
#include <cmath>
#include <type_traits>
#include <utility>

#include "config/schema/value.h"
#include "config/yaml/yaml_scalar.h"
#include "core/text.h"

namespace welkin::config {
namespace {

struct YamlText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(uint64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return float_text(value); }
  std::string operator()(const std::string& value) const { return value.empty() ? "null" : quote_if_needed(value); }
  std::string operator()(const Checkpointing& value) const { return quote_if_needed(text_of(value)); }
  std::string operator()(const MicroBatchSize& value) const { return text_of(value); }
  std::string operator()(const CheckpointInterval& value) const { return text_of(value); }
  std::string operator()(const StepCounts& value) const { return text_of(value); }
  std::string operator()(const SpatialRanks& value) const { return text_of(value); }
  template <typename T>
  std::string operator()(const std::optional<T>& value) const {
    return value ? (*this)(*value) : "null";
  }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    std::vector<std::string> texts;
    for (const T& value : values) texts.push_back((*this)(value));
    return cat("[", join(texts, ", "), "]");
  }
  template <typename T>
  requires std::is_enum_v<T> std::string operator()(T value) const { return quote_if_needed(name_of(value)); }
};

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return float_text(value);
}

// `nested`: inside a list or map, where Python shows strings in quotes.
struct PythonText {
  bool nested = false;

  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(uint64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return python_float(value); }
  std::string operator()(const std::string& value) const {
    if (value.empty()) return "None";
    return nested ? cat("'", value, "'") : value;
  }
  std::string operator()(const Checkpointing& value) const { return (*this)(text_of(value)); }
  std::string operator()(const MicroBatchSize& value) const { return text_of(value); }
  std::string operator()(const CheckpointInterval& value) const { return text_of(value); }
  std::string operator()(const StepCounts& value) const { return text_of(value); }
  std::string operator()(const SpatialRanks& value) const { return text_of(value); }
  template <typename T>
  std::string operator()(const std::optional<T>& value) const {
    return value ? (*this)(*value) : "None";
  }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    std::vector<std::string> texts;
    for (const T& value : values) texts.push_back(PythonText{true}(value));
    return cat("[", join(texts, ", "), "]");
  }
  template <typename T>
  requires std::is_enum_v<T> std::string operator()(T value) const { return (*this)(std::string(name_of(value))); }
};

struct TypeName {
  std::string operator()(const bool&) const { return "switch"; }
  std::string operator()(const int64_t&) const { return "integer"; }
  std::string operator()(const uint64_t&) const { return "integer"; }
  std::string operator()(const double&) const { return "number"; }
  std::string operator()(const std::string&) const { return "string"; }
  std::string operator()(const Checkpointing&) const { return "string"; }
  std::string operator()(const MicroBatchSize&) const { return "integer or auto"; }
  std::string operator()(const CheckpointInterval&) const { return "integer or auto"; }
  std::string operator()(const StepCounts&) const { return "integer or list of integers"; }
  std::string operator()(const SpatialRanks&) const { return "string"; }
  template <typename T>
  std::string operator()(const std::optional<T>&) const {
    return cat((*this)(T()), " or null");
  }
  template <typename T>
  std::string operator()(const std::vector<T>&) const {
    return cat("list of ", (*this)(T()), "s");
  }
  template <typename T>
  requires std::is_enum_v<T> std::string operator()(const T&) const { return "string"; }
};

template <typename Visitor>
std::string visit_value(const RunConfig& config, const Key& key, Visitor visitor) {
  auto& readable = const_cast<RunConfig&>(config);  // accessors hand out mutable references: it is only read, and is large
  return std::visit([&](auto accessor) { return visitor(std::as_const(accessor(readable))); }, key.field);
}

std::string type_of(const Key& key) {
  return std::visit([]<typename T>(Accessor<T>) { return TypeName{}(T()); }, key.field);
}

}  // namespace

std::string value_text(const RunConfig& config, const Key& key) { return visit_value(config, key, YamlText{}); }

std::string python_text(const RunConfig& config, const Key& key, bool nested) {
  return visit_value(config, key, PythonText{nested});
}

std::string type_name(const Key& key) {
  if (!key.choices.empty()) return join(split(key.choices, '|'), " | ");
  return type_of(key);
}

bool is_text(const Key& key) { return !std::holds_alternative<Accessor<bool>>(key.field) && type_of(key).starts_with("string"); }

bool is_text_list(const Key& key) { return std::holds_alternative<Accessor<std::vector<std::string>>>(key.field); }

bool is_switch(const Key& key) { return std::holds_alternative<Accessor<bool>>(key.field); }

}  // namespace welkin::config
