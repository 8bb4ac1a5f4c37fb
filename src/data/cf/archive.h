// SPDX-License-Identifier: Apache-2.0
// Archives of others, with an array for each variable, read as training files without a copy: a Zarr store as WeatherBench2 and
// ARCO-ERA5 have it, or a folder of netCDF-4 files with a variable and some years each, as CMIP6 has it. Torch-free.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/cf/file_times.h"
#include "data/storage/chunk_cache.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

struct ArchiveOptions {
  std::filesystem::path path;  // a store or a file, or a folder of them; folders inside of it are looked into
  // In the order of the channels: "2m_temperature", "geopotential@500" (one level), "geopotential" (its `levels`); "tas:t2m"
  // renames. A channel of a pressure level is called geopotential500, one of another level theta_3.
  std::vector<std::string> variables;
  std::vector<double> levels;       // hPa on pressure levels; empty: all
  std::vector<std::string> times;   // first and last (time_span.h); empty: all
  std::string times_key = "times";  // the key of `times`, for errors
  TimeKeys time_keys{};
};

struct Archive {
  // For each stretch of times without a gap, cut at years where these have 100 steps and more, as welkin data ingest does: arrays
  // `fields` (time, channel, latitude, longitude), `static`, `latitude`, `longitude`, `time`, with the attributes of training
  // files. A variable without times is static. The path of a part has the year behind a #.
  std::vector<ArrayFile> parts;
  std::vector<std::filesystem::path> files;  // files that were opened and hold part of it
};

// DataError for an archive without these variables or levels, with variables on different grids or at different times, or with
// the same time twice; ConfigError for dates that cannot be read or hold none of the times.
Archive open_archive(const ArchiveOptions& options, const std::shared_ptr<ChunkCache>& cache);

}  // namespace welkin::data
