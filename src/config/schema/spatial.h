// SPDX-License-Identifier: Apache-2.0
// The value of the key `spatial`: ranks along the depth, height and width of a sample's box.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace welkin::config {

struct SpatialRanks {
  int64_t d = 1, h = 1, w = 1;

  int64_t size() const { return d * h * w; }
  bool operator==(const SpatialRanks&) const = default;
};

// "1x1x2": three numbers from 1 to 1024. Nullopt for other texts.
std::optional<SpatialRanks> parse_spatial(std::string_view text);
std::string text_of(const SpatialRanks& value);

}  // namespace welkin::config
