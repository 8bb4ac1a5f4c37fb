// SPDX-License-Identifier: Apache-2.0
// A whole box from overlapping crops. Planes of the first axis are written as soon as every crop that counts there is added, so a
// rank holds the planes of one row of crops, however long the box is. Ranks share out the planes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "parallel/comm/world.h"
#include "train/evaluate/trained_model.h"

namespace welkin::train {

struct MosaicOptions {
  std::filesystem::path output;  // .zarr or .nc: `prediction` (channel, z, y, x) as the data set's files hold the target
  int64_t overlap = 16;          // cells, at least, of a crop upon the next; below half of a crop
};

// Every rank calls it. `progress` is told how many of this rank's crops are done, and of how many. ConfigError for models of
// fields, an output that is there or has another name, and those of MosaicAxis.
void predict_mosaic(const TrainedModel& model, const MosaicOptions& options, const parallel::World& world,
                    const std::function<void(int64_t, int64_t)>& progress);

}  // namespace welkin::train
