// SPDX-License-Identifier: Apache-2.0
// A forecast file as animations over its leads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/sample/dataset.h"
#include "observe/image/animation.h"

namespace welkin::train {

struct ForecastMovieOptions {
  std::filesystem::path forecast;     // what ForecastRun has written
  std::vector<std::string> channels;  // of the run; empty: the first
  observe::image::AnimationFormat format = observe::image::AnimationFormat::Apng;
};

// Of the first start; of an ensemble the mean and the spread (standard deviation over the members). Beside the file, as
// NAME_<channel>.apng; returns the paths. ConfigError for a channel that is not there.
std::vector<std::filesystem::path> write_forecast_movies(const data::SampleSpec& spec, const ForecastMovieOptions& options);

// ConfigError for a channel that is not there: before hours of work.
void check_movie_channels(const data::SampleSpec& spec, const std::vector<std::string>& channels);

}  // namespace welkin::train
