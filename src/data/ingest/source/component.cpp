// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/source/component.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/ingest/source/netcdf3_header.h"
#include "data/ingest/source/remote.h"

namespace welkin::data::ingest {
namespace {

constexpr const char* kLibraryName = "libwelkin_ingest.so";
constexpr const char* kRemedy =
    "Install libeccodes-dev and libnetcdf-dev, build with -DWELKIN_BUILD_INGEST=ON, and leave libwelkin_ingest.so beside "
    "libwelkin.so "
    "(or name it with --component)";
constexpr int64_t kPlanesAtOnce = 65536;

struct ErrorText {
  std::array<char, 512> text{};
  char* data() { return text.data(); }
  static constexpr int64_t capacity() { return 512; }
  const char* c_str() {
    text.back() = '\0';
    return text.data();
  }
};

template <size_t N>
bool is_text(const char (&field)[N]) {
  return std::find(field, field + N, '\0') != field + N;
}

bool is_sound(const welkin_ingest_variable& v, size_t num_grids) {
  const bool texts = is_text(v.name) && is_text(v.other_name) && is_text(v.long_name) && is_text(v.units) &&
                     is_text(v.level_type) && is_text(v.time_units) && is_text(v.calendar) && is_text(v.skipped);
  const bool level = v.level_kind >= WELKIN_INGEST_LEVEL_NONE && v.level_kind <= WELKIN_INGEST_LEVEL_OTHER;
  return texts && level && v.grid >= -1 && v.grid < static_cast<int32_t>(num_grids) && (v.grid >= 0 || v.skipped[0] != '\0');
}

bool is_sound(const welkin_ingest_plane& p, const SourceTables& tables) {
  return p.variable >= 0 && static_cast<size_t>(p.variable) < tables.variables.size() &&
         tables.variables[static_cast<size_t>(p.variable)].grid >= 0 && std::isfinite(p.level) && p.address >= 0;
}

void check_netcdf3(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string problem = netcdf3_problem(file.bytes(), file.bytes().size());
  if (problem.empty()) return;
  throw DataError("ingest", cat("the header of a netCDF-3 file is damaged: path=", path.string(), ", reason=", problem),
                  "Check that the file is complete");
}

}  // namespace

std::filesystem::path library_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&library_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  const auto path = std::filesystem::weakly_canonical(info.dli_fname, ignored);
  return path.parent_path();
}

Component::Component(const std::filesystem::path& path, const CheckHelper& helper) {
  const auto library = std::filesystem::absolute(path.empty() ? library_folder() / kLibraryName : path);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(library, ignored)) {
    throw DataError("ingest", cat("the GRIB and netCDF component is not installed: library=", library.string()), kRemedy);
  }
  if (!helper.program.empty()) remote_ = RemoteComponent::start(helper.program, library);
  if (!remote_ && helper.on_absent && !can_run(helper)) helper.on_absent();
  if (remote_) {
    api_ = &RemoteComponent::api();
    return;
  }
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw DataError("ingest", cat("the GRIB and netCDF component cannot be loaded: ", dlerror()), kRemedy);
  using Entry = const welkin_ingest_api* (*)(uint32_t);
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, WELKIN_INGEST_ENTRY));
  api_ = entry == nullptr ? nullptr : entry(WELKIN_INGEST_ABI);
  if (api_ == nullptr || api_->abi != WELKIN_INGEST_ABI) {
    throw DataError("ingest", cat("the GRIB and netCDF component is of another version: library=", library.string()), kRemedy);
  }
}

Component::Component(const welkin_ingest_api& api) : api_(&api) {}
Component::~Component() = default;

std::string Component::versions() const { return remote_ ? remote_->versions() : api_->versions; }

std::unique_ptr<Source> Component::open(const std::filesystem::path& path, Format format) const {
  if (format == Format::Netcdf3) check_netcdf3(path);
  ErrorText error;
  welkin_ingest_source* handle = nullptr;
  const auto absolute = std::filesystem::absolute(path);  // netCDF-C takes other texts for addresses of the web
  const int kind = format == Format::Grib ? WELKIN_INGEST_GRIB : WELKIN_INGEST_NETCDF;
  const int code = remote_ ? remote_->open(absolute.c_str(), kind, &handle, error.data(), ErrorText::capacity())
                           : api_->open(absolute.c_str(), kind, &handle, error.data(), ErrorText::capacity());
  if (code != 0 || handle == nullptr) {
    throw DataError("ingest",
                    cat("cannot open a file: path=", path.string(), ", format=", name_of(format), ", reason=", error.c_str()),
                    "Check that the file is complete");
  }
  return std::unique_ptr<Source>(new Source(*api_, handle, path));
}

Source::~Source() { api_.close(handle_); }

void Source::fail(const char* doing, const char* reason) const {
  throw DataError("ingest", cat(doing, ": path=", path_.string(), ", reason=", reason), "Check that the file is complete");
}

SourceTables Source::scan() {
  ErrorText error;
  welkin_ingest_counts counts{};
  const auto must = [&](int code) {
    if (code != 0) fail("cannot read a file", error.c_str());
  };
  must(api_.scan(handle_, &counts, error.data(), ErrorText::capacity()));
  const bool sane = counts.num_variables >= 0 && counts.num_variables <= WELKIN_INGEST_MAX_VARIABLES && counts.num_grids >= 0 &&
                    counts.num_grids <= WELKIN_INGEST_MAX_GRIDS && counts.num_planes >= 0 &&
                    counts.num_planes <= WELKIN_INGEST_MAX_PLANES;
  if (!sane) fail("cannot read a file", "it claims to hold more than any file may");
  SourceTables tables;
  for (int64_t i = 0; i < counts.num_grids; ++i) {
    welkin_ingest_grid size{};
    must(api_.grid(handle_, i, &size, error.data(), ErrorText::capacity()));
    const bool fits = size.height > 0 && size.width > 0 && size.height <= WELKIN_INGEST_MAX_AXIS &&
                      size.width <= WELKIN_INGEST_MAX_AXIS && size.height * size.width <= WELKIN_INGEST_MAX_POINTS;
    if (!fits) fail("cannot read a file", "a grid of impossible size");
    auto& grid = tables.grids.emplace_back();
    grid.latitude.resize(static_cast<size_t>(size.height));
    grid.longitude.resize(static_cast<size_t>(size.width));
    must(api_.coordinates(handle_, i, grid.latitude.data(), size.height, grid.longitude.data(), size.width, error.data(),
                          ErrorText::capacity()));
  }
  tables.variables.resize(static_cast<size_t>(counts.num_variables));
  must(api_.variables(handle_, tables.variables.data(), counts.num_variables, error.data(), ErrorText::capacity()));
  for (const auto& variable : tables.variables) {
    if (!is_sound(variable, tables.grids.size())) fail("cannot read a file", "a variable without sense");
  }
  tables.planes.resize(static_cast<size_t>(counts.num_planes));
  for (int64_t first = 0; first < counts.num_planes; first += kPlanesAtOnce) {
    const int64_t count = std::min(kPlanesAtOnce, counts.num_planes - first);
    must(api_.planes(handle_, first, count, tables.planes.data() + first, error.data(), ErrorText::capacity()));
  }
  for (const auto& plane : tables.planes) {
    if (!is_sound(plane, tables)) fail("cannot read a file", "a field without sense");
  }
  return tables;
}

void Source::read_plane(int64_t address, std::span<float> values) {
  ErrorText error;
  const auto capacity = static_cast<int64_t>(values.size());
  if (api_.read_plane(handle_, address, values.data(), capacity, error.data(), ErrorText::capacity()) != 0) {
    fail("cannot read a field", error.c_str());
  }
}

}  // namespace welkin::data::ingest
