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

FeedReader::FeedReader(const Component& component, const Inventory& inventory, const ChannelPlan& plan, Crop crop)
    : component_(component),
      inventory_(inventory),
      plan_(plan),
      crop_(crop),
      whole_(static_cast<size_t>(inventory.grids[static_cast<size_t>(plan.grid)].num_points())),
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

void FeedReader::read(std::span<const int64_t> fields, std::span<const Channel> channels, std::span<float> out) {
  const auto width = static_cast<int64_t>(inventory_.grids[static_cast<size_t>(plan_.grid)].longitude.size());
  const auto points = static_cast<size_t>(num_points());
  int32_t loaded = -1;
  for (size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].feed != loaded) {  // channels of one feed stand together
      loaded = channels[c].feed;
      const Field& field = inventory_.fields[static_cast<size_t>(fields[static_cast<size_t>(loaded)])];
      read_field(source_of(field.file), inventory_, field, whole_);
      for (int64_t j = 0; j < crop_.height; ++j) {
        std::copy_n(whole_.begin() + (crop_.top + j) * width + crop_.left, crop_.width, cropped_.begin() + j * crop_.width);
      }
    }
    derive(channels[c].derivation, cropped_, out.subspan(c * points, points));
  }
}

}  // namespace welkin::data::ingest
