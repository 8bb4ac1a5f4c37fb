// SPDX-License-Identifier: Apache-2.0
// Reads the channels of one time after another: a bounded number of open files, one buffer, crop and derived channels applied.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "data/ingest/channels.h"
#include "data/ingest/options.h"
#include "data/ingest/regrid.h"
#include "data/ingest/sequences.h"
#include "data/ingest/source/component.h"
#include "data/ingest/source/inventory.h"

namespace welkin::data::ingest {

// The part of the grid that is written. Throws DataError when it does not fit.
Crop resolve_crop(const Grid& grid, const Crop& crop, int64_t patch);

class FeedReader {
 public:
  // References are kept. `grid` is the grid that is cropped, the input's or another; `method` brings every field onto it.
  // `crop` is resolved.
  FeedReader(const Component& component, const Inventory& inventory, const Grid& grid, RegridMethod method, Crop crop);

  int64_t num_points() const { return crop_.height * crop_.width; }

  // All channels of `channels` at one time, (channel, latitude, longitude), NaN where there is no value. `fields` is that time's
  // row of Sequence::fields.
  void read(std::span<const int64_t> fields, std::span<const Channel> channels, std::span<float> out);

 private:
  Source& source_of(int32_t file);
  void load(const Field& field);
  // The loaded field on the new grid, with what has to be derived before.
  std::span<const float> regridded(Derivation derivation);
  void crop_into(std::span<const float> whole, std::span<float> out) const;

  const Component& component_;
  const Inventory& inventory_;
  const Grid& grid_;
  RegridMethod method_;
  Crop crop_;
  std::map<int32_t, Regridder> regridders_;  // by the grid of the input
  int32_t loaded_grid_ = 0;
  std::vector<float> whole_, derived_, regridded_;  // the loaded field; its sine or cosine; either on the new grid
  struct OpenFile {
    int32_t file;
    std::unique_ptr<Source> source;
  };
  std::list<OpenFile> open_;  // newest use first
};

}  // namespace welkin::data::ingest
