// SPDX-License-Identifier: Apache-2.0
// Particles of GenericIO files to fields on a mesh, cloud in cell: their density, and means of their variables (velocities).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/ingest/box/volume.h"

namespace welkin::data::ingest {

inline constexpr const char* kParticles = "particles/";  // before the names of the fields that files of particles have
inline constexpr const char* kParticleDensity = "particles/density";

// (cells, cells, cells), axes x, y, z: the number of particles over its mean, so 1 + overdensity, with unit "1". The files are
// the parts of one box, which wraps around. Point i of the mesh lies at i * extent / cells; a particle is shared between the
// eight points around it. DataError: files of different boxes, a box without extent, no particles, particles outside of the box
// or without a place, a checksum that is wrong.
Volume particle_density(const std::vector<std::filesystem::path>& files, int64_t cells);
// The mean of one of their variables over the particles, weighted by their shares of the point: for a velocity, that of the
// matter. Points without particles have 0; a note gives their number. Its unit is the file's, which GenericIO does not name.
Volume particle_mean(const std::vector<std::filesystem::path>& files, const std::string& variable, int64_t cells);

// The names of the fields, as `particles/...`.
std::vector<std::string> particle_fields(const std::filesystem::path& file);

}  // namespace welkin::data::ingest
