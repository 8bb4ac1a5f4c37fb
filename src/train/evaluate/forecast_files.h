// SPDX-License-Identifier: Apache-2.0
// What `welkin predict` writes: one HDF5 file of samples (prediction_file.h), and a picture per sample
// and channel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "observe/image/animation.h"
#include "train/evaluate/trained_model.h"

namespace welkin::train {

struct ForecastOptions {
  std::filesystem::path folder;       // made if absent: predictions.h5, sample_<index>_<channel>.png
  int64_t num_samples = 4;            // spread evenly over the data set
  int64_t rollout_steps = 1;          // more than 1: predictions.h5 has a lead axis, and the pictures are of the last lead
  std::vector<std::string> channels;  // of the pictures; empty: the first of the target
  std::optional<observe::image::AnimationFormat> animation{};  // of a rollout's leads: sample_<index>_<channel>.apng
};

// Returns the paths written, the HDF5 file first; none on ranks other than the first of a replica, which all call it. Each file
// is whole or absent. ConfigError for a channel that is not there.
std::vector<std::filesystem::path> write_forecasts(const TrainedModel& model, const ForecastOptions& options);

// `count` indices from 0 to size - 1, evenly spread, ascending, without repetition.
std::vector<int64_t> spread_indices(int64_t size, int64_t count);

}  // namespace welkin::train
