// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/feed_reader.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data::ingest {
namespace {

constexpr size_t kMostOpenFiles = 64;  // a month of one variable per file, far below the 1024 that a process may open

// Sine and cosine are taken on the input's grid: the mean of 350 and 10 degrees is 0, not 180. A mask is taken on the new grid:
// it says where that one has a value.
bool is_taken_first(Derivation derivation) { return derivation == Derivation::Sine || derivation == Derivation::Cosine; }

}  // namespace

Crop resolve_crop(const Grid& grid, const Crop& crop, int64_t patch) {
  const auto height = static_cast<int64_t>(grid.latitude.size()), width = static_cast<int64_t>(grid.longitude.size());
  Crop result = crop;
  if (result.height == 0) result.height = height - result.top;
  if (result.width == 0) result.width = width - result.left;
  if (patch > 0) {
    result.height -= result.height % patch;
    result.width -= result.width % patch;
  }
  const bool fits = result.top >= 0 && result.left >= 0 && result.height > 0 && result.width > 0 &&
                    result.height <= height - result.top && result.width <= width - result.left;
  if (fits) return result;
  throw DataError("ingest",
                  cat("the crop does not fit the grid: crop=", result.height, "x", result.width, " at row ", result.top,
                      ", column ", result.left, ", grid=", height, "x", width, ", patch=", patch),
                  "Ask for a smaller --crop or --patch");
}

FeedReader::FeedReader(const Component& component, const Inventory& inventory, const Grid& grid, RegridMethod method, Crop crop)
    : component_(component),
      inventory_(inventory),
      grid_(grid),
      method_(method),
      crop_(crop),
      regridded_(static_cast<size_t>(grid.num_points())) {}

Source& FeedReader::source_of(int32_t file) {
  const auto found = std::ranges::find(open_, file, &OpenFile::file);
  if (found != open_.end()) {
    open_.splice(open_.begin(), open_, found);
    return *open_.front().source;
  }
  if (open_.size() >= kMostOpenFiles) open_.pop_back();
  const InputFile& input = inventory_.files[static_cast<size_t>(file)];
  open_.push_front({file, component_.open(input.path, input.format)});
  return *open_.front().source;
}

void FeedReader::load(const Field& field) {
  loaded_grid_ = inventory_.variables[static_cast<size_t>(field.variable)].grid;
  whole_.resize(static_cast<size_t>(inventory_.grids[static_cast<size_t>(loaded_grid_)].num_points()));
  read_field(source_of(field.file), inventory_, field, whole_);
}

std::span<const float> FeedReader::regridded(Derivation derivation) {
  auto found = regridders_.find(loaded_grid_);
  if (found == regridders_.end()) {
    const Grid& from = inventory_.grids[static_cast<size_t>(loaded_grid_)];
    found = regridders_.emplace(loaded_grid_, Regridder(from, grid_, method_)).first;
  }
  if (is_taken_first(derivation)) {
    derived_.resize(whole_.size());
    derive(derivation, whole_, derived_);
    found->second.apply(derived_, regridded_);
  } else {
    found->second.apply(whole_, regridded_);
  }
  return regridded_;
}

void FeedReader::crop_into(std::span<const float> whole, std::span<float> out) const {
  const auto width = static_cast<int64_t>(grid_.longitude.size());
  for (int64_t j = 0; j < crop_.height; ++j) {
    std::copy_n(whole.begin() + (crop_.top + j) * width + crop_.left, crop_.width, out.begin() + j * crop_.width);
  }
}

void FeedReader::read(std::span<const int64_t> fields, std::span<const Channel> channels, std::span<float> out) {
  const auto points = static_cast<size_t>(num_points());
  int32_t loaded = -1;
  for (size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].feed != loaded) {  // channels of one feed stand together
      loaded = channels[c].feed;
      load(inventory_.fields[static_cast<size_t>(fields[static_cast<size_t>(loaded)])]);
    }
    const Derivation derivation = channels[c].derivation;
    const std::span<float> to = out.subspan(c * points, points);
    const bool is_regridded = &inventory_.grids[static_cast<size_t>(loaded_grid_)] != &grid_;
    crop_into(is_regridded ? regridded(derivation) : whole_, to);
    if (!is_regridded || !is_taken_first(derivation)) derive(derivation, to, to);
  }
}

}  // namespace welkin::data::ingest
