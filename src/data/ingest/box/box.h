// SPDX-License-Identifier: Apache-2.0
// `welkin data ingest --box`: three-dimensional fields to the N-body layout: <out>/train.h5 and <out>/valid.h5 with the data sets
// Nbody (inputs) and Hydro (targets), each (channel, depth, height, width) float32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/check/check_child.h"
#include "data/ingest/ingest.h"
#include "data/ingest/options.h"

namespace welkin::data::ingest {

struct BoxOptions {
  std::vector<std::filesystem::path> inputs;  // files and folders: HDF5 of any layout, netCDF, GRIB, GenericIO
  bool recursive = false;                     // folders inside of folders too
  std::filesystem::path out;                  // must not exist
  std::vector<VariableChoice> input,
      target;                       // data sets by path or last name ("ParticleDisplacements_x"), or variables on levels ("u")
  std::vector<std::string> vector;  // channels scaled by one factor without an offset: components along axes 0, 1, 2 of the box
  std::vector<std::string>
      log;                     // channels of which the decimal logarithm is taken first; zeros become the smallest positive value
  std::vector<int64_t> shape;  // the shape in which the values of a data set are read, if not as stored (same count)
  int64_t cells = 0;           // edge of the mesh on which particles (GenericIO) become the field particles/density
  double valid_fraction = 0;   // of the box along `valid_axis`, at its end, held back; 0 = no valid.h5
  int64_t valid_axis = 0;      // 0, 1 or 2
  double target_deviations =
      1;                  // targets are divided by so many deviations: the U-Net ends in tanh, so 5 keeps nearly all in [-1, 1]
  bool periodic = false;  // all axes wrap around; the cut one no longer does in the two parts
  std::string licence, command;
  std::filesystem::path component;  // as Component takes it
  CheckHelper helper{};             // likewise
};

// written = (transform(x) - offset) / scale with mean and deviation over the training part. The attributes `transform`,
// `offset` and `scale` of each data set give it per channel; `channels`, `units`, `periodic` and `axes` describe the data.
// Levels ascend along axis 0, rows go from the north, columns eastward. Memory: one channel. Throws DataError; the output
// appears as a whole or not at all.
Report ingest_box(const BoxOptions& options);

}  // namespace welkin::data::ingest
