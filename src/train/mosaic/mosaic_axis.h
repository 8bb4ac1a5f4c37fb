// SPDX-License-Identifier: Apache-2.0
// Crops along one axis of a box: evenly spread, at least `overlap` cells of one upon the next, around the end where the axis is
// periodic. A cell is blended from at most two crops, with weights that fall linearly about the middle between their centres and
// add up to 1; at its centre a crop stands alone. Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace welkin::train {

class MosaicAxis {
 public:
  // ConfigError for an overlap that is not below half of the crop, or a box smaller than the crop.
  MosaicAxis(int64_t extent, int64_t crop, int64_t overlap, bool is_periodic);

  int64_t extent() const { return extent_; }
  int64_t crop() const { return crop_; }
  int64_t num_crops() const { return static_cast<int64_t>(first_.size()); }
  // First cell of a crop, in [0, extent).
  int64_t first(int64_t crop) const { return first_[static_cast<size_t>(crop)]; }
  // The share of this crop in cell first(crop) + i, counted around the end; i in [0, crop()).
  double weight(int64_t crop, int64_t i) const;
  // Crops that count at a cell.
  std::vector<int64_t> crops_at(int64_t cell) const;

 private:
  double share_after(double place, double middle) const;

  int64_t extent_, crop_;
  double half_;  // of the cells over which two crops are blended
  bool is_periodic_;
  std::vector<int64_t> first_;
};

}  // namespace welkin::train
