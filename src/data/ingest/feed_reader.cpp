// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/feed_reader.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data::ingest {
namespace {

constexpr size_t kMostOpenFiles = 64;  // a month of one variable per file, far below the 1024 that a process may open

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
      regridded_(static_cast<size_t>(grid.num_points())),
      cropped_(static_cast<size_t>(crop.height * crop.width)) {}

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

const std::vector<float>& FeedReader::on_grid(const Field& field) {
  const int32_t number = inventory_.variables[static_cast<size_t>(field.variable)].grid;
  const Grid& grid = inventory_.grids[static_cast<size_t>(number)];
  whole_.resize(static_cast<size_t>(grid.num_points()));
  read_field(source_of(field.file), inventory_, field, whole_);
  if (&grid == &grid_) return whole_;
  auto found = regridders_.find(number);
  if (found == regridders_.end()) found = regridders_.emplace(number, Regridder(grid, grid_, method_)).first;
  found->second.apply(whole_, regridded_);
  return regridded_;
}

void FeedReader::read(std::span<const int64_t> fields, std::span<const Channel> channels, std::span<float> out) {
  const auto width = static_cast<int64_t>(grid_.longitude.size());
  const auto points = static_cast<size_t>(num_points());
  int32_t loaded = -1;
  for (size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].feed != loaded) {  // channels of one feed stand together
      loaded = channels[c].feed;
      const auto& whole = on_grid(inventory_.fields[static_cast<size_t>(fields[static_cast<size_t>(loaded)])]);
      for (int64_t j = 0; j < crop_.height; ++j) {
        std::copy_n(whole.begin() + (crop_.top + j) * width + crop_.left, crop_.width, cropped_.begin() + j * crop_.width);
      }
    }
    derive(channels[c].derivation, cropped_, out.subspan(c * points, points));
  }
}

}  // namespace welkin::data::ingest
