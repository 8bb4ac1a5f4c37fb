// SPDX-License-Identifier: Apache-2.0
// The fields of the selected channels sorted into one sequence of complete times per ensemble member.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/ingest/channels.h"
#include "data/ingest/options.h"
#include "data/ingest/source/inventory.h"

namespace welkin::data::ingest {

struct Sequence {
  int32_t member = 0;
  std::vector<int64_t> times;   // ascending, no duplicates; all feeds are there at each
  std::vector<int64_t> fields;  // (time, feed): indices into Inventory::fields
};

struct Sequences {
  std::vector<Sequence> members;  // one when there is no ensemble
  bool is_ensemble = false;
  std::vector<std::string> notes;  // duplicates resolved, incomplete times left out
};

// Throws DataError for duplicates (unless a policy resolves them), for members asked for that are not there, and when no time is
// complete. A feed with a single member serves all members; a feed without time serves all times.
Sequences sort_sequences(const Inventory& inventory, const ChannelPlan& plan, const Options& options);

}  // namespace welkin::data::ingest
