// SPDX-License-Identifier: Apache-2.0
// A simulated box as files, slab by slab: HDF5 (channel, axis 0, 1, 2) and its npy twins with the channel last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/simulate/manifest.h"
#include "data/simulate/universe/box_fields.h"

namespace welkin::data::simulate {

struct BoxTarget {
  std::filesystem::path folder;  // exists
  std::string stem;              // <stem>.h5, <stem>_data.npy, <stem>_label.npy
  bool npy = true;
};

// Each file appears whole or not at all. Throws DataError.
void write_box(const BoxTarget& target, const BoxFields& fields, int64_t edge, const BoxScaling& scaling,
               const Provenance& provenance);

}  // namespace welkin::data::simulate
