// SPDX-License-Identifier: Apache-2.0
// Parses JSON of unknown origin. An ordered_json copies its values when it is read and printed, by functions that recurse for
// each level, so deeply nested values are left out.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace welkin::observe {

// Returns a discarded value for text that is not JSON.
inline nlohmann::ordered_json shallow_json(std::string_view text) {
  using Json = nlohmann::ordered_json;
  constexpr int kDeepest = 8;
  const auto is_shallow = [](int depth, Json::parse_event_t /*event*/, const Json& /*value*/) { return depth <= kDeepest; };
  return Json::parse(text.begin(), text.end(), is_shallow, /*allow_exceptions=*/false);
}

}  // namespace welkin::observe
