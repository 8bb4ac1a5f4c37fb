// SPDX-License-Identifier: Apache-2.0
// Regrids from one latitude-longitude grid to another: bilinear, or first-order conservative (Jones 1999,
// doi:10.1175/1520-0493(1999)127<2204:FASOCR>2.0.CO;2), whose area-weighted sums stay. Both are products of weights along each
// axis. Cells are those of data/sample/row_cells.h along a meridian, and along a row end halfway between points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/ingest/options.h"
#include "data/ingest/source/inventory.h"

namespace welkin::data::ingest {

// Cells of one size, without points at the poles and from 0 E on: latitude 90 - (i + 0.5) * 180 / rows, longitude
// j * 360 / columns. WeatherBench2's "equiangular".
Grid equiangular_grid(int64_t rows, int64_t columns);

// For each point of an axis, its source points and their weights. Weights of a point add up to 1, less the share outside.
struct AxisWeights {
  struct Part {
    int32_t point = 0;
    double weight = 0;
  };
  std::vector<std::vector<Part>> of;

  int64_t size() const { return static_cast<int64_t>(of.size()); }
};

class Regridder {
 public:
  // Rows of both from the north, columns eastward in degrees. DataError where the target reaches beyond a source that is no
  // globe.
  Regridder(const Grid& from, const Grid& to, RegridMethod method);

  // NaN is a point without a value. A target point is the weighted mean of those with a value, and NaN where these have less
  // than half of its weight.
  void apply(std::span<const float> from, std::span<float> to);

  const Grid& grid() const { return to_; }

 private:
  Grid to_;
  int64_t columns_;  // of the source
  AxisWeights rows_, columns_weights_;
  std::vector<double> sums_, weights_;  // of a row of the target, by column of the source
};

}  // namespace welkin::data::ingest
