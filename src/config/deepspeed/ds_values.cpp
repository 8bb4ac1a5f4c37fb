// SPDX-License-Identifier: Apache-2.0
// Scalars of the JSON as the text of a setting.
#include <cmath>
#include <cstdint>

#include "config/deepspeed/ds_keys.h"
#include "core/text.h"

namespace welkin::config {

DsValue ds_whole(const YamlNode& node) {
  constexpr double kLargest = 9007199254740992.0;  // 2^53: whole numbers up to here are exact as JSON's doubles
  const bool is_number = node.kind == YamlKind::Int || node.kind == YamlKind::Float;
  if (!is_number || !std::isfinite(node.number) || node.number < 0 || node.number > kLargest ||
      node.number != std::floor(node.number)) {
    return {.problem = "wants a whole number"};
  }
  return {.text = cat(static_cast<int64_t>(node.number))};
}

DsValue ds_number(const YamlNode& node) {
  const bool is_number = node.kind == YamlKind::Int || (node.kind == YamlKind::Float && std::isfinite(node.number));
  return is_number ? DsValue{.text = node.text} : DsValue{.problem = "wants a number"};
}

DsValue ds_switch(const YamlNode& node) {
  if (node.kind != YamlKind::Bool) return {.problem = "wants true or false"};
  return {.text = node.boolean ? "true" : "false"};
}

}  // namespace welkin::config
