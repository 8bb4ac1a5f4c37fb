// SPDX-License-Identifier: Apache-2.0
// Training files for the benchmarks of the data engine, filled with smooth numbers that compress as fields do.
#pragma once

#include <cstdint>
#include <filesystem>

namespace welkin::bench {

// HDF5 with Nbody (4, edge^3) and Hydro (5, edge^3). chunk 0: in one piece; else cubes of that edge, deflated at `deflate` (0:
// not).
void write_box_hdf5(const std::filesystem::path& path, int64_t edge, int64_t chunk, int deflate);
// The same values as npy (edge, edge, edge, channels).
void write_box_npy(const std::filesystem::path& path, int64_t edge, int64_t channels);
// `years` files y0000.h5, ... with fields (steps, channels, height, width) and statistics beside them.
void write_years(const std::filesystem::path& folder, int64_t years, int64_t steps, int64_t channels, int64_t height,
                 int64_t width);

}  // namespace welkin::bench
