// SPDX-License-Identifier: Apache-2.0
#include "config/schema/spatial.h"

#include <array>
#include <charconv>

#include "core/text.h"

namespace welkin::config {

std::optional<SpatialRanks> parse_spatial(std::string_view text) {
  constexpr int64_t kMostRanks = 1024;
  std::array<int64_t, 3> sizes{};
  const char* at = text.data();
  const char* end = text.data() + text.size();
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (axis > 0 && (at == end || *at++ != 'x')) return {};
    const auto [next, error] = std::from_chars(at, end, sizes[axis]);
    if (error != std::errc() || sizes[axis] < 1 || sizes[axis] > kMostRanks) return {};
    at = next;
  }
  if (at != end) return {};
  return SpatialRanks{sizes[0], sizes[1], sizes[2]};
}

std::string text_of(const SpatialRanks& value) { return cat(value.d, "x", value.h, "x", value.w); }

}  // namespace welkin::config
