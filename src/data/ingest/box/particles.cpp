// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/box/particles.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/genericio/genericio_column.h"

namespace welkin::data::ingest {
namespace {

constexpr size_t kParticlesAtOnce = size_t{1} << 16;
constexpr int64_t kMostCellsAlong = 2048;  // along an axis
// Coordinates in single precision, and those that left the box in the last step of a simulation.
constexpr double kOutside = 1e-3;  // of the extent

// The two points of the mesh beside a particle along an axis, and their shares.
struct Neighbours {
  std::array<int64_t, 2> point;
  std::array<double, 2> share;
};

Neighbours neighbours(double place, int64_t cells) {
  const double below = std::floor(place);
  int64_t point = static_cast<int64_t>(below) % cells;
  if (point < 0) point += cells;
  const double upper = place - below;
  return {.point = {point, point + 1 == cells ? 0 : point + 1}, .share = {1 - upper, upper}};
}

class ParticleMesh {
 public:
  explicit ParticleMesh(int64_t cells) : cells_(cells), mass_(static_cast<size_t>(cells * cells * cells)) {}

  void add(const std::filesystem::path& path) {
    const GenericIoFile file(path);
    const GenericIoHeader& header = file.header();
    check_box(path, header);
    for (size_t rank = 0; rank < header.ranks.size(); ++rank) add_rank(file, rank);
  }

  Volume density() const {
    if (particles_ == 0)
      throw DataError("ingest", "the files hold no particles: particles=0", "Give the files of the particles themselves");
    Volume volume{.shape = {cells_, cells_, cells_}, .values = {}, .units = "1"};
    volume.values.reserve(mass_.size());
    const double mean = static_cast<double>(particles_) / static_cast<double>(mass_.size());
    for (const double mass : mass_) volume.values.push_back(static_cast<float>(mass / mean));
    return volume;
  }

 private:
  void check_box(const std::filesystem::path& path, const GenericIoHeader& header) {
    const auto refuse = [&](const std::string& what) {
      throw DataError(
          "ingest",
          cat(what, ": path=", path.string(), ", origin=", join(header.origin, " "), ", extent=", join(header.extent, " ")),
          "Give the files of one box");
    };
    for (size_t axis = 0; axis < 3; ++axis) {
      if (!std::isfinite(header.origin[axis]) || !std::isfinite(header.extent[axis]) || !(header.extent[axis] > 0))
        refuse("a box of particles without extent");
    }
    if (is_first_) origin_ = header.origin, extent_ = header.extent;
    is_first_ = false;
    if (origin_ != header.origin || extent_ != header.extent) refuse("particles of different boxes");
  }

  void add_rank(const GenericIoFile& file, size_t rank) {
    std::array<GenericIoColumn, 3> columns{GenericIoColumn(file, file.coordinate(0), rank),
                                           GenericIoColumn(file, file.coordinate(1), rank),
                                           GenericIoColumn(file, file.coordinate(2), rank)};
    std::array<std::vector<double>, 3> places;
    while (columns[0].left() > 0) {
      const auto count = static_cast<size_t>(std::min<uint64_t>(kParticlesAtOnce, columns[0].left()));
      for (size_t axis = 0; axis < 3; ++axis) {
        places[axis].resize(count);
        columns[axis].read(places[axis]);
        to_mesh(file, axis, places[axis]);
      }
      for (size_t i = 0; i < count; ++i) deposit(places[0][i], places[1][i], places[2][i]);
      particles_ += static_cast<int64_t>(count);
    }
  }

  void to_mesh(const GenericIoFile& file, size_t axis, std::vector<double>& places) const {
    for (double& place : places) {
      const double share = (place - origin_[axis]) / extent_[axis];
      if (!(share >= -kOutside && share <= 1 + kOutside)) {
        throw DataError("ingest",
                        cat("a particle outside of the box: path=", file.file().path().string(), ", axis=", "xyz"[axis],
                            ", coordinate=", place, ", origin=", origin_[axis], ", extent=", extent_[axis]),
                        "Write the box into the file (PhysOrigin, PhysScale), or the particles in its units");
      }
      place = share * static_cast<double>(cells_);
    }
  }

  void deposit(double x, double y, double z) {
    const Neighbours nx = neighbours(x, cells_), ny = neighbours(y, cells_), nz = neighbours(z, cells_);
    for (size_t a = 0; a < 2; ++a) {
      for (size_t b = 0; b < 2; ++b) {
        const int64_t row = (nx.point[a] * cells_ + ny.point[b]) * cells_;
        const double share = nx.share[a] * ny.share[b];
        mass_[static_cast<size_t>(row + nz.point[0])] += share * nz.share[0];
        mass_[static_cast<size_t>(row + nz.point[1])] += share * nz.share[1];
      }
    }
  }

  int64_t cells_, particles_ = 0;
  std::vector<double> mass_;
  bool is_first_ = true;
  std::array<double, 3> origin_{}, extent_{};
};

}  // namespace

Volume particle_density(const std::vector<std::filesystem::path>& files, int64_t cells) {
  if (cells < 1 || cells > kMostCellsAlong) {
    throw ConfigError("ingest", cat("a density of particles needs a mesh: cells=", cells),
                      cat("Give its edge with --cells, from 1 to ", kMostCellsAlong));
  }
  ParticleMesh mesh(cells);
  for (const auto& file : files) mesh.add(file);
  return mesh.density();
}

}  // namespace welkin::data::ingest
