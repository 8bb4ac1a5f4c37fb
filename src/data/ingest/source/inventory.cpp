// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/source/inventory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"
#include "data/sample/dataset.h"

namespace welkin::data::ingest {
namespace {

namespace fs = std::filesystem;

constexpr double kSameDegrees = 1e-4;  // single-precision coordinates of one archive, double-precision ones of another

InputFile look_at_file(const fs::path& path) {
  InputFile file{.path = path, .format = format_of_file(path), .bytes = fs::file_size(path), .xxh3 = 0};
  if (file.format == Format::Unknown) return file;
  file.xxh3 = xxh3_64_of_file(path);
  return file;
}

bool promises_fields(const fs::path& path) {
  static constexpr std::array<std::string_view, 9> kEndings{".nc",    ".nc4",  ".cdf", ".grib", ".grb",
                                                            ".grib2", ".grb2", ".h5",  ".hdf5"};
  return std::ranges::find(kEndings, path.extension().string()) != kEndings.end();
}

void add_folder(const fs::path& folder, Subfolders subfolders, int depth, Inputs& inputs) {
  constexpr int kDeepest = 32;
  std::vector<fs::directory_entry> entries(fs::directory_iterator(folder), fs::directory_iterator{});
  std::ranges::sort(entries, {}, [](const auto& entry) { return entry.path(); });
  for (const auto& entry : entries) {
    if (entry.is_directory()) {
      if (subfolders == Subfolders::Read && !entry.is_symlink() && depth < kDeepest) {
        add_folder(entry.path(), subfolders, depth + 1, inputs);
      } else {
        const bool can = subfolders == Subfolders::Skip && !entry.is_symlink();
        inputs.warnings.push_back(
            cat("warning: not looked into: folder=", entry.path().string(), can ? " (--recursive does)" : ""));
      }
    } else if (entry.is_regular_file()) {
      InputFile file = look_at_file(entry.path());
      if (file.format != Format::Unknown) {
        inputs.files.push_back(std::move(file));
      } else if (promises_fields(entry.path())) {
        inputs.warnings.push_back(
            cat("warning: left out: path=", entry.path().string(), ", reason=its content is neither GRIB nor netCDF nor HDF5"));
      }
    }
  }
}

bool is_ascending(const std::vector<double>& v) { return std::ranges::adjacent_find(v, std::ranges::greater_equal{}) == v.end(); }
bool is_descending(const std::vector<double>& v) { return std::ranges::adjacent_find(v, std::ranges::less_equal{}) == v.end(); }

// Longitudes without the jump at 180 or 360 degrees.
void unwrap(std::vector<double>& longitude, bool eastward) {
  for (size_t i = 1; i < longitude.size(); ++i) {
    const double step = longitude[i] - longitude[i - 1];
    if (eastward && step < -180) longitude[i] += 360;
    if (!eastward && step > 180) longitude[i] -= 360;
  }
}

bool goes_east(const std::vector<double>& longitude) {
  if (longitude.size() < 2) return true;
  const double step = longitude[1] - longitude[0];
  return step > 0 ? step < 180 : step < -180;
}

// Turns a file's grid north first and eastward.
Layout normalise(Grid& grid, const fs::path& path) {
  Layout layout;
  layout.east_first = !goes_east(grid.longitude);
  unwrap(grid.longitude, !layout.east_first);
  if (layout.east_first) std::ranges::reverse(grid.longitude);
  layout.south_first = grid.latitude.size() > 1 && grid.latitude[1] > grid.latitude[0];
  if (layout.south_first) std::ranges::reverse(grid.latitude);
  if (grid.longitude.front() >= 180 && grid.longitude.back() >= 360) {
    for (double& degrees : grid.longitude) degrees -= 360;
  }
  const auto finite = [](double degrees) { return std::isfinite(degrees); };
  const bool sane = std::ranges::all_of(grid.latitude, finite) && std::ranges::all_of(grid.longitude, finite) &&
                    is_descending(grid.latitude) && is_ascending(grid.longitude) &&
                    std::abs(grid.latitude.front()) <= 90 + kSameDegrees && std::abs(grid.latitude.back()) <= 90 + kSameDegrees &&
                    grid.longitude.back() - grid.longitude.front() < 360;
  const bool repeats =
      grid.longitude.size() > 1 && std::abs(grid.longitude.back() - grid.longitude.front() - 360) <= kSameDegrees;
  if (!sane && repeats) {
    throw DataError("ingest",
                    cat("the last longitude of a file repeats the first: path=", path.string(),
                        ", first=", grid.longitude.front(), ", last=", grid.longitude.back()),
                    "Leave its last column out (ncks -d, xarray's isel)");
  }
  if (!sane) {
    throw DataError("ingest", cat("the latitudes or longitudes of a file are not in order: path=", path.string()),
                    "Sort or repair its coordinates (cdo invertlat, sellonlatbox)");
  }
  return layout;
}

bool is_same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return std::abs(x - y) <= kSameDegrees; });
}

// Index in `other` of the first of `longitude`, if both are the same points of the circle in the same order.
std::optional<size_t> turn_between(const std::vector<double>& longitude, const std::vector<double>& other) {
  const size_t count = longitude.size();
  if (other.size() != count) return std::nullopt;
  const auto same = [](double a, double b) { return std::abs(std::remainder(a - b, 360.0)) <= kSameDegrees; };
  for (size_t first = 0; first < count; ++first) {
    size_t i = 0;
    while (i < count && same(longitude[i], other[(first + i) % count])) ++i;
    if (i == count) return first;
  }
  return std::nullopt;
}

void merge_grid(std::vector<Grid>& grids, Grid grid, Layout& layout) {
  for (size_t g = 0; g < grids.size(); ++g) {
    if (!is_same(grids[g].latitude, grid.latitude)) continue;
    const auto turn = turn_between(grids[g].longitude, grid.longitude);
    if (!turn) continue;
    layout.grid = static_cast<int32_t>(g);
    layout.first_column = static_cast<int64_t>(*turn);
    return;
  }
  layout.grid = static_cast<int32_t>(grids.size());
  grids.push_back(std::move(grid));
}

// "m s**-1" and "m s-1" are one unit; a unit that is not said is another one.
bool is_same_unit(const std::string& a, const std::string& b) { return a.empty() == b.empty() && may_be_same_unit(a, b); }

bool is_same(const Variable& a, const Variable& b) {
  return a.name == b.name && a.level_type == b.level_type && a.level_kind == b.level_kind && is_same_unit(a.units, b.units) &&
         a.grid == b.grid && a.has_time == b.has_time && a.calendar == b.calendar;
}

int32_t merge_variable(std::vector<Variable>& variables, Variable variable) {
  const auto same = std::ranges::find_if(variables, [&](const Variable& other) { return is_same(other, variable); });
  if (same != variables.end()) return static_cast<int32_t>(same - variables.begin());
  variables.push_back(std::move(variable));
  return static_cast<int32_t>(variables.size() - 1);
}

// One file's tables, translated into the inventory's indices.
class FileReading {
 public:
  FileReading(Inventory& inventory, int32_t file, const SourceTables& tables)
      : inventory_(inventory),
        file_(file),
        tables_(tables),
        units_(tables.variables.size()),
        merged_(tables.variables.size(), -1) {}

  void add_all() {
    for (const auto& grid : tables_.grids) add_grid({grid.latitude, grid.longitude});
    for (size_t i = 0; i < tables_.variables.size(); ++i) add_variable(i);
    for (const auto& plane : tables_.planes) add_field(plane);
  }

 private:
  const fs::path& path() const { return inventory_.files[static_cast<size_t>(file_)].path; }

  void add_grid(Grid grid) {
    Layout layout = normalise(grid, path());
    const double west = grid.longitude.front();
    merge_grid(inventory_.grids, std::move(grid), layout);
    if (layout.first_column > 0) {
      inventory_.notes.push_back(cat("turned to the longitudes of the first file: path=", path().filename().string(),
                                     ", begins at ", west, " E, written from ",
                                     inventory_.grids[static_cast<size_t>(layout.grid)].longitude.front(), " E"));
    }
    inventory_.layouts.push_back(layout);
    layouts_.push_back(static_cast<int32_t>(inventory_.layouts.size() - 1));
  }

  void add_variable(size_t index) {
    const welkin_ingest_variable& from = tables_.variables[index];
    if (from.grid < 0) return leave_out(from, from.skipped);
    Variable variable{.name = from.name,
                      .other_name = from.other_name,
                      .long_name = from.long_name,
                      .units = from.units,
                      .level_type = from.level_type,
                      .level_kind = from.level_kind};
    variable.grid = inventory_.layouts[static_cast<size_t>(layouts_[static_cast<size_t>(from.grid)])].grid;
    variable.has_time = from.time_units[0] != '\0';
    if (variable.has_time) {
      try {
        units_[index] = parse_time_units(from.time_units, from.calendar);
      } catch (const DataError& problem) {
        return leave_out(from, problem.what());
      }
      variable.calendar = written_calendar(units_[index].calendar);
    }
    merged_[index] = merge_variable(inventory_.variables, std::move(variable));
  }

  void leave_out(const welkin_ingest_variable& variable, std::string reason) {
    const std::string file = path().filename().string();
    if (variable.is_minor == 0)
      inventory_.notes.push_back(cat("left out: variable=", variable.name, ", path=", file, ", reason=", reason));
    inventory_.left_out.push_back({variable.name, file, std::move(reason)});
  }

  void add_field(const welkin_ingest_plane& plane) {
    const auto index = static_cast<size_t>(plane.variable);
    if (merged_[index] < 0) return;  // left out
    const bool has_time = inventory_.variables[static_cast<size_t>(merged_[index])].has_time;
    const auto layout = layouts_[static_cast<size_t>(tables_.variables[index].grid)];
    inventory_.fields.push_back({file_, merged_[index], layout, plane.member, plane.level,
                                 has_time ? units_[index].to_seconds(plane.time) : 0, plane.address});
  }

  Inventory& inventory_;
  int32_t file_;
  const SourceTables& tables_;
  std::vector<TimeUnits> units_;
  std::vector<int32_t> merged_;   // variable of the inventory
  std::vector<int32_t> layouts_;  // layout of the inventory
};

}  // namespace

Inputs find_inputs(const std::vector<fs::path>& paths, Subfolders subfolders) try {
  Inputs inputs;
  for (const auto& path : paths) {
    if (fs::is_directory(path)) {
      add_folder(path, subfolders, 0, inputs);
    } else if (fs::is_regular_file(path)) {
      inputs.files.push_back(look_at_file(path));
      if (inputs.files.back().format == Format::Unknown) {
        throw DataError("ingest", cat("neither GRIB nor netCDF nor HDF5: path=", path.string()), "Give files of these formats");
      }
    } else {
      throw DataError("ingest", cat("there is no such file or folder: path=", path.string()), "Check the path");
    }
  }
  if (inputs.files.empty()) {
    throw DataError(
        "ingest",
        cat("nothing to read: inputs=", join(paths, " "), inputs.warnings.empty() ? "" : "; ", join(inputs.warnings, "; ")),
        "Give files or folders with GRIB or netCDF files");
  }
  return inputs;
} catch (const fs::filesystem_error& error) {
  throw DataError("ingest", cat("cannot read: ", error.what()), "Check the path and its permissions");
}

Inventory take_inventory(const Component& component, std::vector<InputFile> files) {
  Inventory inventory;
  inventory.files = std::move(files);
  for (size_t i = 0; i < inventory.files.size(); ++i) {
    const InputFile& file = inventory.files[i];
    if (file.format == Format::GenericIo) {
      inventory.left_out.push_back({"particles", file.path.filename().string(), "only --box takes particles"});
      continue;
    }
    const SourceTables tables = component.open(file.path, file.format)->scan();
    FileReading(inventory, static_cast<int32_t>(i), tables).add_all();
  }
  return inventory;
}

void read_field(Source& source, const Inventory& inventory, const Field& field, std::span<float> values) {
  const Layout& layout = inventory.layouts[static_cast<size_t>(field.layout)];
  const Grid& grid = inventory.grids[static_cast<size_t>(layout.grid)];
  source.read_plane(field.address, values);
  const auto width = static_cast<std::ptrdiff_t>(grid.longitude.size());
  const auto height = static_cast<std::ptrdiff_t>(grid.latitude.size());
  if (layout.south_first) {
    for (std::ptrdiff_t j = 0; j < height / 2; ++j) {
      std::swap_ranges(values.begin() + j * width, values.begin() + (j + 1) * width, values.begin() + (height - 1 - j) * width);
    }
  }
  for (std::ptrdiff_t j = 0; j < height; ++j) {
    const auto row = values.begin() + j * width;
    if (layout.east_first) std::reverse(row, row + width);
    if (layout.first_column > 0) std::rotate(row, row + layout.first_column, row + width);
  }
}

}  // namespace welkin::data::ingest
