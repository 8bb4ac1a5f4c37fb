// SPDX-License-Identifier: Apache-2.0
// The C functions of component_abi.h over Source: bounds, and exceptions turned into error texts.
#include <eccodes.h>
#include <netcdf.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "data/ingest/component/source.h"

struct welkin_ingest_source {
  std::unique_ptr<welkin::ingest_component::Source> source;
  welkin::ingest_component::Tables tables;
};

namespace welkin::ingest_component {
namespace {

template <typename Body>
int guarded(char* error, int64_t capacity, Body&& body) {
  std::string message;
  try {
    body();
    return 0;
  } catch (const std::bad_alloc&) {
    message = "out of memory";
  } catch (const std::exception& problem) {
    message = problem.what();
  } catch (...) {
    message = "unknown problem";
  }
  if (error != nullptr && capacity > 0) copy_text(message, {error, static_cast<size_t>(capacity)});
  return 1;
}

void require(bool condition, const char* what) {
  if (!condition) throw SourceError(what);
}

int open_source(const char* path, int format, welkin_ingest_source** out, char* error, int64_t capacity) {
  return guarded(error, capacity, [&] {
    auto opened = std::make_unique<welkin_ingest_source>();
    require(format == WELKIN_INGEST_GRIB || format == WELKIN_INGEST_NETCDF, "unknown format");
    opened->source = format == WELKIN_INGEST_GRIB ? open_grib(path) : open_netcdf(path);
    *out = opened.release();
  });
}

void close_source(welkin_ingest_source* source) { delete source; }

int scan_source(welkin_ingest_source* source, welkin_ingest_counts* out, char* error, int64_t capacity) {
  return guarded(error, capacity, [&] {
    source->tables = {};
    source->source->scan(source->tables);
    *out = {static_cast<int64_t>(source->tables.variables.size()), static_cast<int64_t>(source->tables.grids.size()),
            static_cast<int64_t>(source->tables.planes.size())};
  });
}

int get_variables(welkin_ingest_source* source, welkin_ingest_variable* out, int64_t count, char* error, int64_t capacity) {
  return guarded(error, capacity, [&] {
    const auto& all = source->tables.variables;
    require(count == static_cast<int64_t>(all.size()), "wrong number of variables asked for");
    std::copy(all.begin(), all.end(), out);
  });
}

int get_planes(welkin_ingest_source* source, int64_t first, int64_t count, welkin_ingest_plane* out, char* error,
               int64_t capacity) {
  return guarded(error, capacity, [&] {
    const auto& all = source->tables.planes;
    const auto size = static_cast<int64_t>(all.size());
    require(first >= 0 && count >= 0 && first <= size && count <= size - first, "fields out of range asked for");
    std::copy_n(all.begin() + first, count, out);
  });
}

const Grid& grid_at(const welkin_ingest_source* source, int64_t index) {
  require(index >= 0 && index < static_cast<int64_t>(source->tables.grids.size()), "a grid out of range asked for");
  return source->tables.grids[static_cast<size_t>(index)];
}

int get_grid(welkin_ingest_source* source, int64_t index, welkin_ingest_grid* out, char* error, int64_t capacity) {
  return guarded(error, capacity, [&] {
    const Grid& grid = grid_at(source, index);
    *out = {static_cast<int64_t>(grid.latitude.size()), static_cast<int64_t>(grid.longitude.size())};
  });
}

int get_coordinates(welkin_ingest_source* source, int64_t index, double* latitude, int64_t height, double* longitude,
                    int64_t width, char* error, int64_t capacity) {
  return guarded(error, capacity, [&] {
    const Grid& grid = grid_at(source, index);
    require(height == static_cast<int64_t>(grid.latitude.size()) && width == static_cast<int64_t>(grid.longitude.size()),
            "wrong number of coordinates asked for");
    std::ranges::copy(grid.latitude, latitude);
    std::ranges::copy(grid.longitude, longitude);
  });
}

int read_plane(welkin_ingest_source* source, int64_t address, float* values, int64_t num_values, char* error, int64_t capacity) {
  return guarded(error, capacity, [&] {
    require(num_values > 0 && num_values <= WELKIN_INGEST_MAX_POINTS, "a field of impossible size asked for");
    source->source->read_plane(address, {values, static_cast<size_t>(num_values)});
  });
}

// "ecCodes 2.28.0, netCDF-C 4.9.0"
const std::string& library_versions() {
  static const std::string text = [] {
    const std::string netcdf = nc_inq_libvers();  // "4.9.0 of Sep 18 2022 ..."
    return "ecCodes " ECCODES_VERSION_STR ", netCDF-C " + netcdf.substr(0, netcdf.find(' '));
  }();
  return text;
}

}  // namespace
}  // namespace welkin::ingest_component

extern "C" __attribute__((visibility("default"))) const welkin_ingest_api* welkin_ingest_component(uint32_t abi) {
  namespace component = welkin::ingest_component;
  if (abi != WELKIN_INGEST_ABI) return nullptr;
  static const welkin_ingest_api api{.abi = WELKIN_INGEST_ABI,
                                     .versions = component::library_versions().c_str(),
                                     .open = component::open_source,
                                     .close = component::close_source,
                                     .scan = component::scan_source,
                                     .variables = component::get_variables,
                                     .planes = component::get_planes,
                                     .grid = component::get_grid,
                                     .coordinates = component::get_coordinates,
                                     .read_plane = component::read_plane};
  return &api;
}
