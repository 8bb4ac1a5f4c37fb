// SPDX-License-Identifier: Apache-2.0
// Particles of GenericIO files to a density on a mesh, cloud in cell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "data/ingest/box/volume.h"

namespace welkin::data::ingest {

inline constexpr const char* kParticleDensity = "particles/density";  // the field that files of particles have

// (cells, cells, cells), axes x, y, z: the number of particles over its mean, so 1 + overdensity, with unit "1". The files are
// the parts of one box, which wraps around. Point i of the mesh lies at i * extent / cells; a particle is shared between the
// eight points around it. DataError: files of different boxes, a box without extent, no particles, particles outside of the box
// or without a place, a checksum that is wrong.
Volume particle_density(const std::vector<std::filesystem::path>& files, int64_t cells);

}  // namespace welkin::data::ingest
