// SPDX-License-Identifier: Apache-2.0
// A plane of a predicted box beside input and target, as `welkin predict` draws samples.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/evaluate/trained_model.h"

namespace welkin::train {

// Plane `z` of the first axis of the box. `prediction`: (C, y, x) of it, as the data set's files hold the target. `paths`: one
// for each of `channels`, which are places in the target. Reads input and target of the plane, crop by crop.
void draw_mosaic_plane(const TrainedModel& model, int64_t z, const at::Tensor& prediction, const std::vector<int64_t>& channels,
                       const std::vector<std::filesystem::path>& paths);

}  // namespace welkin::train
