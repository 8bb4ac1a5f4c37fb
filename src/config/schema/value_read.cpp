// SPDX-License-Identifier: Apache-2.0
#include <type_traits>
#include <utility>

#include "config/schema/value.h"
#include "config/yaml/yaml_scalar.h"
#include "core/text.h"

namespace welkin::config {
namespace {

std::string wrong_type(std::string_view wanted, const YamlNode& node) {
  std::string text = cat("wants ", wanted, ", is ", kind_name(node.kind));
  if (node.kind != YamlKind::Sequence && node.kind != YamlKind::Mapping && node.kind != YamlKind::Null)
    text += cat(" (", node.text, ")");
  return text;
}

// Reads one node into a value of type T; returns an error text, or nullopt.
class NodeReader {
 public:
  explicit NodeReader(const YamlDocument& document) : document_(document) {}

  std::optional<std::string> read(const YamlNode& node, bool& value) const {
    if (node.kind != YamlKind::Bool) return wrong_type("true or false", node);
    value = node.boolean;
    return {};
  }
  std::optional<std::string> read(const YamlNode& node, int64_t& value) const {
    if (node.kind != YamlKind::Int) return wrong_type("an integer", node);
    value = node.integer;
    return {};
  }
  std::optional<std::string> read(const YamlNode& node, uint64_t& value) const {
    if (node.kind != YamlKind::Int || node.integer < 0) return wrong_type("an integer of at least 0", node);
    value = static_cast<uint64_t>(node.integer);
    return {};
  }
  std::optional<std::string> read(const YamlNode& node, double& value) const {
    if (node.kind != YamlKind::Int && node.kind != YamlKind::Float) return wrong_type("a number", node);
    value = node.number;
    return {};
  }
  // A number is taken by its text (run_num: 00); null empties a string.
  std::optional<std::string> read(const YamlNode& node, std::string& value) const {
    if (node.kind == YamlKind::Bool || node.kind == YamlKind::Sequence || node.kind == YamlKind::Mapping)
      return wrong_type("a string", node);
    value = node.kind == YamlKind::Null ? std::string() : node.text;
    return {};
  }
  std::optional<std::string> read(const YamlNode& node, Checkpointing& value) const {
    std::string text, problem;
    if (auto wrong = read(node, text)) return wrong;
    const auto parsed = parse_checkpointing(text, problem);
    if (parsed) value = *parsed;
    return parsed ? std::nullopt : std::optional(problem);
  }
  std::optional<std::string> read(const YamlNode& node, SpatialRanks& value) const {
    const auto parsed = parse_spatial(node.text);
    if (!parsed) return wrong_type("ranks along depth, height and width as DxHxW, for instance 1x1x2", node);
    value = *parsed;
    return {};
  }
  std::optional<std::string> read(const YamlNode& node, MicroBatchSize& value) const { return read_or_auto(node, value); }
  std::optional<std::string> read(const YamlNode& node, CheckpointInterval& value) const { return read_or_auto(node, value); }
  std::optional<std::string> read(const YamlNode& node, StepCounts& value) const {
    if (node.kind == YamlKind::Sequence) return read(node, value.numbers);
    if (node.kind != YamlKind::Int) return wrong_type("an integer or a list of integers", node);
    value = StepCounts(node.integer);
    return {};
  }
  template <typename T>
  std::optional<std::string> read(const YamlNode& node, std::optional<T>& value) const {
    value.reset();
    if (node.kind == YamlKind::Null) return {};
    auto problem = read(node, value.emplace());
    if (problem) value.reset();
    return problem;
  }
  template <typename T>
  std::optional<std::string> read(const YamlNode& node, std::vector<T>& value) const {
    if (node.kind != YamlKind::Sequence) return wrong_type("a list", node);
    std::vector<T> items(node.items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      if (auto problem = read(document_.at(node.items[i]), items[i])) return cat("element ", i, " ", *problem);
    }
    value = std::move(items);
    return {};
  }
  // A text that is no name of the enum is not tried: see unknown_choice().
  template <typename T>
  requires std::is_enum_v<T> std::optional<std::string> read(const YamlNode& node, T& value)
  const {
    std::string name;
    if (auto problem = read(node, name)) return problem;
    if (node.kind != YamlKind::Null) value = choice_named<T>(name).value_or(value);
    if (node.kind == YamlKind::Null) value = T{};
    return {};
  }

 private:
  template <typename T>
  static std::optional<std::string> read_or_auto(const YamlNode& node, T& value) {
    if (node.kind != YamlKind::Int && node.text != "auto") return wrong_type("an integer or auto", node);
    value = node.kind == YamlKind::Int ? T(node.integer) : T();
    value.is_auto = node.kind != YamlKind::Int;
    return {};
  }

  const YamlDocument& document_;
};

}  // namespace

std::optional<std::string> assign(RunConfig& config, const Key& key, const YamlDocument& document, YamlId id) {
  const NodeReader reader(document);
  return std::visit([&](auto accessor) { return reader.read(document.at(id), accessor(config)); }, key.field);
}

}  // namespace welkin::config
