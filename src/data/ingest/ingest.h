// SPDX-License-Identifier: Apache-2.0
// From GRIB and netCDF files to the training layout: <out>/{train,valid,test}/*.h5, <out>/stats/*.npy and <out>/ingest.json.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/ingest/options.h"
#include "data/ingest/source/component.h"

namespace welkin::data::ingest {

struct Report {
  std::vector<std::string> lines;  // for people: what was read, found, left out and written
};

// Called now and then with the work done and the whole.
using Progress = std::function<void(int64_t done, int64_t total)>;

// Reads everything twice: once to check every value and to gather the statistics of the training part, once to write. Memory: one
// time of all channels, 12 bytes for each point of a channel for the time means, 40 bytes for each field of the input. The output
// appears as a whole or not at all. Throws DataError.
Report ingest(const Component& component, const Options& options, const Progress& progress);

}  // namespace welkin::data::ingest
