// SPDX-License-Identifier: Apache-2.0
// Points without a value, and the channels that share them: one mask for each group of channels, stored once where it is the
// same at all times.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/hash.h"

namespace welkin::data::ingest {

// The points of one channel, seen time by time.
class MissingPoints {
 public:
  void add(std::span<const float> values);  // the next time; NaN is a point without a value

  int64_t count() const { return count_; }  // over all times
  bool is_constant() const { return is_constant_; }
  // 1 where the first time has a value, else 0.
  std::vector<float> first_mask() const { return {first_.begin(), first_.end()}; }
  int64_t first_count() const;  // points without a value at the first time
  bool same_as(const MissingPoints& other) const;

 private:
  std::vector<uint8_t> first_;
  Xxh3 hash_;  // of all times
  int64_t count_ = 0;
  bool is_constant_ = true;
};

struct MaskGroup {
  std::string name;              // "mask" where there is one group, else "<first channel>_mask"
  std::vector<size_t> channels;  // the channels that share it
};

// The channels with points without a value, in order.
std::vector<MaskGroup> group_masks(const std::vector<const MissingPoints*>& points, const std::vector<std::string>& names);

}  // namespace welkin::data::ingest
