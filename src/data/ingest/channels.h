// SPDX-License-Identifier: Apache-2.0
// From variables and levels to the channels of the output: selection, names, and channels derived from others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/ingest/options.h"
#include "data/ingest/source/inventory.h"

namespace welkin::data::ingest {

// One variable on one level, read for every time.
struct Feed {
  int32_t variable = 0;
  double level = 0;
  std::string name;  // "t2m", "t500", "t_17"
};

enum class Derivation { Value, Sine, Cosine, Mask };

struct Channel {
  std::string name;
  std::string units;
  int32_t feed = 0;
  Derivation derivation = Derivation::Value;
};

struct ChannelPlan {
  std::vector<Feed> feeds;
  std::vector<Channel> channels;
  int32_t grid = 0;
  Calendar calendar = Calendar::ProlepticGregorian;
  std::vector<std::string> notes;
};

// Throws DataError for names that match nothing (with the nearest ones), a selection that spans grids or calendars, or two
// channels of one name.
ChannelPlan plan_channels(const Inventory& inventory, const Options& options);

// A channel's values from its feed's, point by point; `feed` and `out` have one size and may be the same memory.
void derive(Derivation derivation, std::span<const float> feed, std::span<float> out);

}  // namespace welkin::data::ingest
