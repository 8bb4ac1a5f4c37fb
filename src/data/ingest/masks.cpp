// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/masks.h"

#include <algorithm>
#include <cmath>

namespace welkin::data::ingest {

void MissingPoints::add(std::span<const float> values) {
  std::vector<uint8_t> mask(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    mask[i] = std::isnan(values[i]) ? 0 : 1;
    count_ += 1 - mask[i];
  }
  hash_.update(std::as_bytes(std::span<const uint8_t>(mask)));
  if (first_.empty()) {
    first_ = std::move(mask);
  } else if (is_constant_) {
    is_constant_ = mask == first_;
  }
}

int64_t MissingPoints::first_count() const { return std::ranges::count(first_, 0); }

bool MissingPoints::same_as(const MissingPoints& other) const {
  return count_ == other.count_ && is_constant_ == other.is_constant_ && first_ == other.first_ &&
         hash_.digest() == other.hash_.digest();
}

std::vector<MaskGroup> group_masks(const std::vector<const MissingPoints*>& points, const std::vector<std::string>& names) {
  std::vector<MaskGroup> groups;
  for (size_t c = 0; c < points.size(); ++c) {
    if (points[c]->count() == 0) continue;
    const auto same =
        std::ranges::find_if(groups, [&](const MaskGroup& group) { return points[group.channels.front()]->same_as(*points[c]); });
    if (same == groups.end()) {
      groups.push_back({.name = names[c] + "_mask", .channels = {c}});
    } else {
      same->channels.push_back(c);
    }
  }
  if (groups.size() == 1 && std::ranges::count(names, "mask") == 0) groups.front().name = "mask";
  return groups;
}

}  // namespace welkin::data::ingest
