// SPDX-License-Identifier: Apache-2.0
// `welkin data simulate nbody`: a training and a validation box in the files that the U-Net tutorials name.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/process/thread_pool.h"
#include "data/simulate/manifest.h"
#include "data/simulate/universe/box_fields.h"
#include "data/simulate/universe/cosmology.h"
#include "data/simulate/universe/particle_mesh.h"

namespace welkin::data::simulate {

struct NbodyOptions {
  std::filesystem::path out;
  int64_t edge = 64;        // cells of the training box; even, 8 to 4096
  int64_t edge_valid = 32;  // cells of the validation box
  double cell_mpc_h = 0.5;  // comoving edge of a cell
  double redshift_start = 49.0;
  StartOrder start = StartOrder::Zeldovich;
  double redshift = 0.0;  // of the fields
  int64_t steps = 32;     // of the leapfrog
  bool deconvolve = false;
  bool npy = true;  // the channel-last twins beside the HDF5 files
  bool overwrite = false;
  uint64_t seed = 1;
  double max_memory_gib = 4.0;
  std::filesystem::path scratch;  // for boxes larger than memory; empty: `out`
  Cosmology cosmology{};
  GasClosure gas;
  BoxScaling scaling;
};

// The sizes of the tutorials' boxes (1024 and 512) times `scale`, even, at least 16.
void set_scale(NbodyOptions& options, double scale);

// Throws one ConfigError with all problems.
void validate(const NbodyOptions& options);

// Writes downsamp_2048crop_train.h5, downsamp_1024crop_valid.h5 (Nbody (4, L, L, L), Hydro (5, L, L, L)), their npy twins
// <stem>_data.npy, <stem>_label.npy ((L, L, L, channel)) and simulation.json. Returns false when they are there already.
bool simulate_nbody(const NbodyOptions& options, ThreadPool& pool, const SimulationProgress& progress);

}  // namespace welkin::data::simulate
