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

// Reads one node into a value of type T; what is wrong otherwise.
class NodeReader {
 public:
  NodeReader(const YamlDocument& document, const Key& key) : document_(document), key_(key) {}

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
  template <typename T>
  std::optional<std::string> read(const YamlNode& node, std::optional<T>& value) const {
    value.reset();
    if (node.kind == YamlKind::Null) return {};
    return read(node, value.emplace());
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
  template <typename T>
  requires std::is_enum_v<T> std::optional<std::string> read(const YamlNode& node, T& value)
  const {
    const auto choices = split(key_.choices, '|');
    const std::string_view text = node.kind == YamlKind::Null ? choices.front() : std::string_view(node.text);
    for (size_t i = 0; i < choices.size(); ++i) {
      if (choices[i] != text) continue;
      value = static_cast<T>(i);
      return {};
    }
    return cat("is none of ", join(choices, ", "));
  }

 private:
  const YamlDocument& document_;
  const Key& key_;
};

}  // namespace

std::optional<std::string> assign(RunConfig& config, const Key& key, const YamlDocument& document, YamlId id) {
  const NodeReader reader(document, key);
  return std::visit([&](auto accessor) { return reader.read(document.at(id), accessor(config)); }, key.field);
}

}  // namespace welkin::config
