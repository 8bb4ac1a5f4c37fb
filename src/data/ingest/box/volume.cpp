// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/box/volume.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"
#include "data/formats/formats.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/ingest/box/particles.h"

namespace welkin::data::ingest {
namespace {

constexpr int64_t kMostCells = int64_t{1} << 33;  // 2048^3

std::string last_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

int64_t cells_of(const std::vector<int64_t>& shape, const std::string& name) {
  const auto fail = [&] {
    throw DataError("ingest", cat("a box of impossible size: field=", name, ", shape=", join(shape, "x")), "Check the file");
  };
  const int64_t cells = checked_product(shape, fail);
  if (cells <= 0 || cells > kMostCells) fail();
  return cells;
}

std::array<int64_t, 3> three_extents(std::vector<int64_t> shape, const std::string& name) {
  const std::string all = join(shape, "x");
  while (shape.size() > 3 && shape.front() == 1) shape.erase(shape.begin());
  if (shape.size() != 3) {
    throw DataError("ingest", cat("not a three-dimensional field: field=", name, ", shape=", all),
                    "Choose another, or say how to read it with --shape");
  }
  return {shape[0], shape[1], shape[2]};
}

void require_finite(const Volume& volume, const std::string& name) {
  const auto bad = std::ranges::count_if(volume.values, [](float v) { return !std::isfinite(v); });
  if (bad == 0) return;
  throw DataError("ingest", cat("values that are not finite: field=", name, ", cells=", bad),
                  "Repair the input: a box may have no holes");
}

}  // namespace

VolumeReader::VolumeReader(std::vector<InputFile> files, std::filesystem::path component, CheckHelper helper, int64_t cells)
    : files_(std::move(files)), component_path_(std::move(component)), helper_(std::move(helper)), cells_(cells) {
  for (size_t i = 0; i < files_.size(); ++i) {
    if (files_[i].format == Format::Hdf5) {
      index_hdf5(i);
    } else if (files_[i].format == Format::GenericIo) {
      particles_.push_back(files_[i].path);
    } else {
      has_other_fields_ = true;
    }
  }
}

// Packed numbers and fields on levels, latitudes and longitudes are left to netCDF.
void VolumeReader::index_hdf5(size_t file) {
  const Hdf5File hdf5 = Hdf5File::open(files_[file].path);
  for (const auto& name : hdf5.dataset_names()) {
    const bool is_float = hdf5.dataset(name).dtype.starts_with("float");
    const bool is_packed = hdf5.has_attribute(name, "scale_factor") || hdf5.has_attribute(name, "add_offset");
    const bool has_dimensions = hdf5.has_attribute(name, "DIMENSION_LIST");
    if (is_float && !is_packed) (has_dimensions ? dimensioned_ : places_).push_back({file, name});
    has_other_fields_ = has_other_fields_ || is_packed || has_dimensions;
  }
}

std::optional<VolumeReader::Place> VolumeReader::find(const std::vector<Place>& places, const std::string& name) {
  std::vector<Place> found;
  for (const Place& place : places) {
    if (place.dataset == name) return place;
    if (last_name(place.dataset) == name) found.push_back(place);
  }
  if (found.empty()) return std::nullopt;
  if (found.size() > 1) {
    throw DataError(
        "ingest",
        cat("the name fits several data sets: field=", name, ", first=", found[0].dataset, ", second=", found[1].dataset),
        "Give the whole path, or fewer files");
  }
  return found.front();
}

Volume VolumeReader::read(const std::string& name, const std::vector<int64_t>& shape) {
  const auto place = find(places_, name);
  if (!particles_.empty() && !place && name == last_name(kParticleDensity)) return particle_density(particles_, cells_);
  if (!particles_.empty() && name.starts_with(kParticles)) {
    return name == kParticleDensity ? particle_density(particles_, cells_) : particle_mean(particles_, last_name(name), cells_);
  }
  Volume volume = place ? read_dataset(*place, shape) : read_levels(name, shape);
  require_finite(volume, name);
  return volume;
}

Volume VolumeReader::read_dataset(const Place& place, const std::vector<int64_t>& shape) const {
  const ArrayFile file = open_hdf5_arrays(files_[place.file].path);
  const StoredArrayPtr array = file.array(place.dataset);
  const Extents stored = array->facts().shape;
  const int64_t cells = cells_of(stored, place.dataset);
  if (!shape.empty() && cells_of(shape, place.dataset) != cells) {
    throw DataError("ingest",
                    cat("the shape does not hold the values: field=", place.dataset, ", stored=", join(stored, "x"),
                        ", shape=", join(shape, "x")),
                    "Give a --shape of as many cells");
  }
  Volume volume{.shape = three_extents(shape.empty() ? stored : shape, place.dataset), .values = {}, .units = {}, .notes = {}};
  volume.values.resize(static_cast<size_t>(cells));
  array->read({Extents(stored.size(), 0), stored}, std::span<float>(volume.values));  // NaN where a value is missing
  volume.units = join(file.texts(place.dataset, "units"), " ");
  return volume;
}

void VolumeReader::fail_unknown(const std::string& name) const {
  std::set<std::string> names;
  for (const auto& place : places_) names.insert(place.dataset);
  for (const auto& place : dimensioned_) names.insert(place.dataset);
  for (const auto& file : particles_) {
    const std::vector<std::string> fields = particle_fields(file);
    names.insert(fields.begin(), fields.end());
  }
  if (inventory_) {
    for (const auto& candidate : inventory_->variables) names.insert(candidate.name);
  }
  const std::string remedy =
      names.empty()
          ? "No data set of these files can be read as a box: they have none of float32 or float64 without a packing, and "
            "none on coordinates. Look with welkin data inspect"
          : cat("There are: ", join(names, ", "));
  throw DataError("ingest", cat("no such field: field=", name), remedy);
}

// Without the component, a wrong name may still be the cause, so the error lists the names.
void VolumeReader::open_component(const std::string& name) {
  try {
    component_.emplace(component_path_, helper_);
  } catch (const DataError& error) {
    std::set<std::string> names;
    for (const auto& place : places_) names.insert(place.dataset);
    throw DataError("ingest", cat("no such data set in plain HDF5: field=", name, ", data sets=", join(names, " ")),
                    cat("Correct the name; to look into GRIB and netCDF files as well: ", error.what()));
  }
  inventory_ = take_inventory(*component_, files_);
}

Volume VolumeReader::read_levels(const std::string& name, const std::vector<int64_t>& shape) {
  if (!has_other_fields_) fail_unknown(name);
  if (!component_) open_component(name);
  std::map<double, const Field*> levels;
  int32_t variable = -1;
  for (const Field& field : inventory_->fields) {
    const Variable& candidate = inventory_->variables[static_cast<size_t>(field.variable)];
    if (candidate.name != name && candidate.other_name != name) continue;
    const bool is_new = levels.emplace(field.level, &field).second;
    if (!is_new || (variable >= 0 && variable != field.variable)) {
      throw DataError("ingest", cat("more than one box of this name: field=", name, ", level=", field.level),
                      "Give files with one time and one member");
    }
    variable = field.variable;
  }
  if (levels.empty()) {  // dimensions of another kind, as z, y, x of xarray
    if (const auto place = find(dimensioned_, name)) return read_dataset(*place, shape);
    fail_unknown(name);
  }
  const Variable& found = inventory_->variables[static_cast<size_t>(variable)];
  const Grid& grid = inventory_->grids[static_cast<size_t>(found.grid)];
  Volume volume{.shape = {static_cast<int64_t>(levels.size()), static_cast<int64_t>(grid.latitude.size()),
                          static_cast<int64_t>(grid.longitude.size())},
                .values = {},
                .units = found.units,
                .notes = {}};
  const auto points = static_cast<size_t>(grid.num_points());
  volume.values.resize(levels.size() * points);
  size_t row = 0;
  for (const auto& [level, field] : levels) {
    const InputFile& file = files_[static_cast<size_t>(field->file)];
    read_field(*component_->open(file.path, file.format), *inventory_, *field,
               std::span(volume.values).subspan(row * points, points));
    ++row;
  }
  return volume;
}

}  // namespace welkin::data::ingest
