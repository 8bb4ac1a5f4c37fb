// SPDX-License-Identifier: Apache-2.0
// Input channels that come from no file but are computed from time and place (solar angle, calendar, coordinates). The data set
// appends them to its input; implementations know no file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/sample/dataset.h"

namespace welkin::data {

// Thread-safe after construction.
class ExtraChannels {
 public:
  virtual ~ExtraChannels() = default;
  virtual int64_t count() const = 0;
  virtual const std::vector<std::string>& names() const = 0;  // size count()
  // False: fill() takes any time.
  virtual bool needs_time() const { return true; }
  // Fills (count(), region.extent[0], region.extent[1]) row-major for a time in seconds since 1970-01-01T00:00 of the file's
  // calendar; the region is in rows and columns of the sample. Values are of order one: they are not normalised again.
  virtual void fill(int64_t unix_seconds, const Region& region, std::span<float> out) const = 0;
};

}  // namespace welkin::data
