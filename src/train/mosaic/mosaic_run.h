// SPDX-License-Identifier: Apache-2.0
// A whole box from overlapping crops. Planes of the first axis are written as soon as every crop that counts there is added, so a
// rank holds the planes of one row of crops, however long the box is. Replicas of the model share out the planes; the ranks of a
// replica make each crop together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "parallel/comm/world.h"
#include "train/evaluate/trained_model.h"

namespace welkin::train {

struct MosaicOptions {
  std::filesystem::path output;       // .zarr or .nc: `prediction` (channel, z, y, x) as the data set's files hold the target
  int64_t overlap = 16;               // cells, at least, of a crop upon the next; below half of a crop
  std::vector<std::string> channels;  // of the pictures; empty: the first of the target
};

// Every rank calls it. Returns the paths written: the output, and for each channel NAME_CHANNEL.png beside it, of the plane in
// the middle of the first axis, drawn by the rank that has it. `progress` is told how many of this rank's crops are done, and of
// how many. ConfigError for models of fields, an output that is there or has another name, a channel that there is not, and those
// of MosaicAxis.
std::vector<std::filesystem::path> predict_mosaic(const TrainedModel& model, const MosaicOptions& options,
                                                  const parallel::World& world,
                                                  const std::function<void(int64_t, int64_t)>& progress);

}  // namespace welkin::train
