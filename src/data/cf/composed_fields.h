// SPDX-License-Identifier: Apache-2.0
// Variables of several arrays and files as one array (time, channel, latitude, longitude), rows north first: nothing is copied
// before it is read. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/storage/stored_array.h"

namespace welkin::data {

// Steps of the whole that stand one after the other in one array (time, level, latitude, longitude), some axes of which may be
// absent.
struct ComposedSteps {
  StoredArrayPtr array;
  bool has_time = true, has_level = false, south_first = false;
  int64_t begin = 0, end = 0;  // of the whole
  int64_t first = 0;           // step of the array that is `begin`
};

struct ComposedChannel {
  size_t variable = 0;
  int64_t level = 0;  // index along that axis
};

class ComposedFields final : public StoredArray {
 public:
  // `variables`: the steps of each, ascending, without a gap. `source` is for errors.
  ComposedFields(const std::string& source, const Extents& shape, std::vector<std::vector<ComposedSteps>> variables,
                 std::vector<ComposedChannel> channels);

  uint64_t bytes_requested() const override;

 protected:
  void read_stored(const ArrayRegion& region, const ValueTarget& target) const override;

 private:
  // Channels from `first` on that one read takes: consecutive levels of one variable.
  int64_t end_of_run(int64_t first, int64_t end) const;
  void read_run(const ComposedSteps& steps, const ArrayRegion& region, const ArrayRegion& wanted,
                const ValueTarget& target) const;

  std::vector<std::vector<ComposedSteps>> variables_;
  std::vector<ComposedChannel> channels_;
};

}  // namespace welkin::data
