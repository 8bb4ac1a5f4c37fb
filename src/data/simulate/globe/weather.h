// SPDX-License-Identifier: Apache-2.0
// `welkin data simulate weather`: years of a simulated atmosphere in the files that the ViT tutorials name.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/process/thread_pool.h"
#include "data/simulate/manifest.h"

namespace welkin::data::simulate {

struct WeatherOptions {
  std::filesystem::path out;
  int64_t years = 2;        // of training, from first_year on
  int64_t years_valid = 1;  // that follow
  int64_t years_test = 1;   // that follow
  int64_t first_year = 1990;
  int64_t steps = 240;        // 6-hourly fields per year, from January 1, 00:00; 1460 is a whole year
  int64_t height = 48;        // rows of the grid, 90 to -90 degrees
  int64_t width = 96;         // columns, from 0 degrees eastwards
  int64_t truncation = 0;     // of the model; 0 = 21, or 42 for grids of 96 rows and more
  int64_t spin_up_days = 45;  // that each year runs before it is written
  bool overwrite = false;
  uint64_t seed = 1;
  double max_memory_gib = 4.0;  // bounds how many years run at once
};

// The tutorials' set (26 + 2 + 1 years of 1460 steps at 360 x 720) times `scale` in years, steps and each side.
void set_scale(WeatherOptions& options, double scale);

// Throws one ConfigError with all problems.
void validate(const WeatherOptions& options);

// Writes train/, valid/ and test/ with <year>.h5 (`fields` (time, 20, lat, lon)), stats/global_means.npy, global_stds.npy (1, 20,
// 1, 1) and time_means.npy (1, 20, lat, lon) of the training years, and simulation.json. Returns false when they are there
// already.
bool simulate_weather(const WeatherOptions& options, ThreadPool& pool, const SimulationProgress& progress);

}  // namespace welkin::data::simulate
