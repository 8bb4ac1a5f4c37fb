// SPDX-License-Identifier: Apache-2.0
#include "train/mosaic/mosaic_axis.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace welkin::train {

MosaicAxis::MosaicAxis(int64_t extent, int64_t crop, int64_t overlap, bool is_periodic)
    : extent_(extent), crop_(crop), half_(static_cast<double>(overlap) / 2), is_periodic_(is_periodic && extent > crop) {
  if (overlap < 0 || 2 * overlap >= crop) {
    throw ConfigError("mosaic", cat("an overlap that crops of this size cannot have: overlap=", overlap, ", crop=", crop),
                      "Give --overlap below half of data_size");
  }
  if (extent < crop) {
    throw ConfigError("mosaic", cat("the box is smaller than a crop: extent=", extent, ", crop=", crop),
                      "Give a larger box, or a smaller data_size");
  }
  const int64_t stride = crop - overlap;
  const int64_t count = is_periodic_ ? (extent + stride - 1) / stride : 1 + (extent - crop + stride - 1) / stride;
  const int64_t range = is_periodic_ ? extent : extent - crop, gaps = is_periodic_ ? count : std::max<int64_t>(1, count - 1);
  for (int64_t i = 0; i < count; ++i) first_.push_back(i * range / gaps);
  // Crops that lie closer than they have to are blended over less, so that each stands alone at its centre.
  for (size_t i = 0; i + 1 < first_.size(); ++i) {
    half_ = std::min(half_, static_cast<double>(first_[i + 1] - first_[i] - 1) / 2);
  }
  if (is_periodic_) half_ = std::min(half_, static_cast<double>(first_.front() + extent - first_.back() - 1) / 2);
}

// The share of the later of two crops at `place`, if `middle` is the middle of their overlap: 0 before, 1 behind.
double MosaicAxis::share_after(double place, double middle) const {
  if (half_ == 0) return place < middle ? 0 : 1;
  return std::clamp((place - middle + half_) / (2 * half_), 0.0, 1.0);
}

double MosaicAxis::weight(int64_t crop, int64_t i) const {
  const int64_t count = num_crops(), begin = first(crop);
  const double place = static_cast<double>(begin + i) + 0.5;
  // The middle of what two crops share is the middle between their centres.
  const auto middle = [&](int64_t one, int64_t next) {
    return (static_cast<double>(one) + static_cast<double>(next) + static_cast<double>(crop_)) / 2;
  };
  double weight = 1;
  if (crop + 1 < count) weight -= share_after(place, middle(begin, first(crop + 1)));
  if (crop + 1 == count && is_periodic_) weight -= share_after(place, middle(begin, first(0) + extent_));
  if (crop > 0) weight *= share_after(place, middle(first(crop - 1), begin));
  if (crop == 0 && is_periodic_) weight *= share_after(place, middle(first(count - 1) - extent_, begin));
  return weight;
}

std::vector<int64_t> MosaicAxis::crops_at(int64_t cell) const {
  std::vector<int64_t> crops;
  for (int64_t crop = 0; crop < num_crops(); ++crop) {
    int64_t i = cell - first(crop);
    if (i < 0 && is_periodic_) i += extent_;
    if (i >= 0 && i < crop_ && weight(crop, i) > 0) crops.push_back(crop);
  }
  return crops;
}

}  // namespace welkin::train
