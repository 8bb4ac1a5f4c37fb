// SPDX-License-Identifier: Apache-2.0
// Internal to convert*.cpp: what --region cuts. Arrays of its rank are cut as it says; what belongs to an axis that is cut
// (coordinates, static planes, attributes with one entry per channel) is cut with it. Torch-free.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/storage/stored_array.h"
#include "data/tools/convert.h"

namespace welkin::data {

class RegionCuts {
 public:
  // `names`: the arrays that are converted. DataError where the region lies outside of one, and where rows are cut from fields
  // whose latitudes are not known. The file is kept.
  RegionCuts(const ArrayFile& file, const ConvertOptions& options, const std::vector<std::string>& names, ConvertReport& report);

  ArrayRegion region_of(const ArrayFacts& facts) const;
  // Brings the attributes of an array in line with its region: entries of channels that are left out go, and an axis that is not
  // whole is periodic no longer.
  void cut_attributes(const ArrayFacts& facts, Attributes& attributes) const;

 private:
  struct Axis {
    std::string name;  // "": the file names no axes, and its kind is not known either
    int64_t length = 0, begin = 0, end = 0;
  };

  ArrayRegion given_region(const ArrayFacts& facts) const;
  std::vector<std::string> axes_of(const ArrayFacts& facts) const;
  std::optional<size_t> channels_of(const ArrayFacts& facts) const;
  void add_cuts(const ArrayFacts& facts);
  void check_latitudes(const ArrayFacts& facts, const std::vector<std::string>& names, ConvertReport& report) const;

  const ArrayFile& file_;
  std::optional<ArrayRegion> region_;
  std::vector<Axis> cuts_;  // axes that are not whole
};

}  // namespace welkin::data
