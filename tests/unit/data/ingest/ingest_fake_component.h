// SPDX-License-Identifier: Apache-2.0
// A GRIB and netCDF component whose files are made in memory, so that everything behind the C boundary is tested without the
// libraries.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/ingest/source/component.h"

namespace welkin::data::ingest::fake {

using Planes = std::vector<welkin_ingest_plane>;

struct File {
  std::vector<welkin_ingest_variable> variables;
  std::vector<SourceTables::Grid> grids;
  Planes planes;                                                             // address = index
  std::function<float(const welkin_ingest_plane&, int64_t, int64_t)> value;  // of a plane, row and column in the file's order
};

inline std::map<std::string, File>& files() {
  static std::map<std::string, File> all;  // by file name: the C functions have no other way to it
  return all;
}

template <size_t N>
void put(char (&to)[N], const std::string& text) {
  text.copy(to, N - 1);
}

inline welkin_ingest_variable variable(const std::string& name, const std::string& units = "K",
                                       int32_t level_kind = WELKIN_INGEST_LEVEL_NONE) {
  welkin_ingest_variable v{};
  put(v.name, name);
  put(v.units, units);
  put(v.time_units, "hours since 2001-01-01");
  put(v.calendar, "proleptic_gregorian");
  v.level_kind = level_kind;
  return v;
}

inline const File& file_of(welkin_ingest_source* source) { return *reinterpret_cast<const File*>(source); }

inline const welkin_ingest_api& api() {
  static const welkin_ingest_api functions{
      .abi = WELKIN_INGEST_ABI,
      .versions = "fake 1",
      .open =
          [](const char* path, int, welkin_ingest_source** out, char*, int64_t) {
            *out = reinterpret_cast<welkin_ingest_source*>(&files().at(std::filesystem::path(path).filename().string()));
            return 0;
          },
      .close = [](welkin_ingest_source*) {},
      .scan =
          [](welkin_ingest_source* source, welkin_ingest_counts* out, char*, int64_t) {
            const File& file = file_of(source);
            *out = {static_cast<int64_t>(file.variables.size()), static_cast<int64_t>(file.grids.size()),
                    static_cast<int64_t>(file.planes.size())};
            return 0;
          },
      .variables =
          [](welkin_ingest_source* source, welkin_ingest_variable* out, int64_t, char*, int64_t) {
            std::ranges::copy(file_of(source).variables, out);
            return 0;
          },
      .planes =
          [](welkin_ingest_source* source, int64_t first, int64_t count, welkin_ingest_plane* out, char*, int64_t) {
            std::copy_n(file_of(source).planes.begin() + first, count, out);
            return 0;
          },
      .grid =
          [](welkin_ingest_source* source, int64_t index, welkin_ingest_grid* out, char*, int64_t) {
            const auto& grid = file_of(source).grids[static_cast<size_t>(index)];
            *out = {static_cast<int64_t>(grid.latitude.size()), static_cast<int64_t>(grid.longitude.size())};
            return 0;
          },
      .coordinates =
          [](welkin_ingest_source* source, int64_t index, double* latitude, int64_t, double* longitude, int64_t, char*, int64_t) {
            const auto& grid = file_of(source).grids[static_cast<size_t>(index)];
            std::ranges::copy(grid.latitude, latitude);
            std::ranges::copy(grid.longitude, longitude);
            return 0;
          },
      .read_plane =
          [](welkin_ingest_source* source, int64_t address, float* values, int64_t, char*, int64_t) {
            const File& file = file_of(source);
            const auto& plane = file.planes[static_cast<size_t>(address)];
            const auto& grid = file.grids[static_cast<size_t>(file.variables[static_cast<size_t>(plane.variable)].grid)];
            for (size_t j = 0; j < grid.latitude.size(); ++j) {
              for (size_t i = 0; i < grid.longitude.size(); ++i)
                *values++ = file.value(plane, static_cast<int64_t>(j), static_cast<int64_t>(i));
            }
            return 0;
          }};
  return functions;
}

// A folder for one test, removed at its end, in which files of no content but the right first bytes stand for the fake ones.
class Workspace {
 public:
  explicit Workspace(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("welkin-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_ / "in");
    files().clear();
  }
  ~Workspace() { std::filesystem::remove_all(path_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path in() const { return path_ / "in"; }
  std::filesystem::path out() const { return path_ / "out"; }
  File& add(const std::string& name, File file) {
    std::ofstream(in() / name) << "GRIB";
    return files()[name] = std::move(file);
  }

 private:
  std::filesystem::path path_;
};

// One variable t2m at `hours` on 2 x 3 points, south first: value = hour + 10 * row from the north + column.
inline File hourly(const std::vector<double>& hours) {
  File file;
  file.variables = {variable("t2m")};
  file.grids = {{.latitude = {40, 50}, .longitude = {0, 1, 2}}};
  for (const double hour : hours) file.planes.push_back({0, 0, 0, hour, static_cast<int64_t>(file.planes.size())});
  file.value = [](const welkin_ingest_plane& plane, int64_t j, int64_t i) {
    return static_cast<float>(plane.time + 10.0 * static_cast<double>(1 - j) + static_cast<double>(i));
  };
  return file;
}

}  // namespace welkin::data::ingest::fake
