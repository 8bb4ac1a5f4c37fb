// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/box/particles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/genericio/genericio_column.h"

namespace welkin::data::ingest {
namespace {

constexpr size_t kParticlesAtOnce = size_t{1} << 16;
constexpr int64_t kMostCellsAlong = 2048;  // along an axis
// Tolerance for coordinates in single precision, and for particles that left the box in the last step of a simulation.
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

class ParticleGrid {
 public:
  // `variable` is averaged, too; may be empty.
  ParticleGrid(int64_t cells, std::string variable) : cells_(cells), variable_(std::move(variable)), mass_(num_points()) {
    if (!variable_.empty()) sum_.resize(num_points());
  }

  void add(const std::filesystem::path& path) {
    const GenericIoFile file(path);
    const GenericIoHeader& header = file.header();
    check_box(path, header);
    for (size_t rank = 0; rank < header.ranks.size(); ++rank) add_rank(file, rank);
  }

  Volume density() const {
    require_particles();
    Volume volume{.shape = {cells_, cells_, cells_}, .values = {}, .units = "1", .notes = {}};
    volume.values.reserve(mass_.size());
    const double mean = static_cast<double>(particles_) / static_cast<double>(mass_.size());
    for (const double mass : mass_) volume.values.push_back(static_cast<float>(mass / mean));
    return volume;
  }

  Volume mean() const {
    require_particles();
    Volume volume{.shape = {cells_, cells_, cells_}, .values = {}, .units = "", .notes = {}};
    volume.values.reserve(mass_.size());
    for (size_t i = 0; i < mass_.size(); ++i)
      volume.values.push_back(mass_[i] > 0 ? static_cast<float>(sum_[i] / mass_[i]) : 0.0F);
    const auto empty = std::ranges::count(mass_, 0.0);
    if (empty > 0) {
      volume.notes.push_back(cat("points without a particle have the mean 0: field=", kParticles, variable_, ", points=", empty,
                                 " of ", mass_.size()));
    }
    return volume;
  }

 private:
  size_t num_points() const { return static_cast<size_t>(cells_ * cells_ * cells_); }

  void require_particles() const {
    if (particles_ > 0) return;
    throw DataError("ingest", "the files hold no particles: particles=0", "Give the files of the particles themselves");
  }

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
    std::optional<GenericIoColumn> variable;
    if (!variable_.empty()) variable.emplace(file, file.variable(variable_), rank);
    std::array<std::vector<double>, 3> places;
    std::vector<double> values;
    while (columns[0].left() > 0) {
      const auto count = static_cast<size_t>(std::min<uint64_t>(kParticlesAtOnce, columns[0].left()));
      for (size_t axis = 0; axis < 3; ++axis) {
        places[axis].resize(count);
        columns[axis].read(places[axis]);
        to_mesh(file, axis, places[axis]);
      }
      values.assign(count, 0);
      if (variable) {
        variable->read(values);
        require_finite_values(file, values);
      }
      for (size_t i = 0; i < count; ++i) deposit(places[0][i], places[1][i], places[2][i], values[i]);
      particles_ += static_cast<int64_t>(count);
    }
  }

  void require_finite_values(const GenericIoFile& file, const std::vector<double>& values) const {
    if (std::ranges::all_of(values, [](double value) { return std::isfinite(value); })) return;
    throw DataError(
        "ingest", cat("a particle with a value that is not finite: path=", file.file().path().string(), ", variable=", variable_),
        "Repair the input: a box may have no holes");
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

  void deposit(double x, double y, double z, double value) {
    const Neighbours nx = neighbours(x, cells_), ny = neighbours(y, cells_), nz = neighbours(z, cells_);
    for (size_t a = 0; a < 2; ++a) {
      for (size_t b = 0; b < 2; ++b) {
        const int64_t row = (nx.point[a] * cells_ + ny.point[b]) * cells_;
        const double share = nx.share[a] * ny.share[b];
        for (size_t c = 0; c < 2; ++c) {
          const auto point = static_cast<size_t>(row + nz.point[c]);
          mass_[point] += share * nz.share[c];
          if (!sum_.empty()) sum_[point] += share * nz.share[c] * value;
        }
      }
    }
  }

  int64_t cells_, particles_ = 0;
  std::string variable_;
  std::vector<double> mass_, sum_;
  bool is_first_ = true;
  std::array<double, 3> origin_{}, extent_{};
};

ParticleGrid mesh_of(const std::vector<std::filesystem::path>& files, const std::string& variable, int64_t cells) {
  if (cells < 1 || cells > kMostCellsAlong) {
    throw ConfigError("ingest", cat("a field of particles needs a mesh: cells=", cells),
                      cat("Give its edge with --cells, from 1 to ", kMostCellsAlong));
  }
  ParticleGrid mesh(cells, variable);
  for (const auto& file : files) mesh.add(file);
  return mesh;
}

}  // namespace

Volume particle_density(const std::vector<std::filesystem::path>& files, int64_t cells) {
  return mesh_of(files, "", cells).density();
}

Volume particle_mean(const std::vector<std::filesystem::path>& files, const std::string& variable, int64_t cells) {
  return mesh_of(files, variable, cells).mean();
}

std::vector<std::string> particle_fields(const std::filesystem::path& file) {
  std::vector<std::string> names{kParticleDensity};
  const GenericIoFile opened(file);
  for (const GenericIoVariable& variable : opened.header().variables) names.push_back(cat(kParticles, variable.name));
  return names;
}

}  // namespace welkin::data::ingest
