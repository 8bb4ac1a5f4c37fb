// SPDX-License-Identifier: Apache-2.0
// JSON that anybody may have written. An ordered_json copies what it holds while it is read and printed, by functions that call
// themselves for each level: what is nested deeply is left out.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace welkin::observe {

// Discarded where the text is no JSON.
inline nlohmann::ordered_json shallow_json(std::string_view text) {
  using Json = nlohmann::ordered_json;
  constexpr int kDeepest = 8;
  const auto is_shallow = [](int depth, Json::parse_event_t /*event*/, const Json& /*value*/) { return depth <= kDeepest; };
  return Json::parse(text.begin(), text.end(), is_shallow, /*allow_exceptions=*/false);
}

}  // namespace welkin::observe
