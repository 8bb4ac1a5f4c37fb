// SPDX-License-Identifier: Apache-2.0
// GRIB 1 and 2 through ecCodes: one message (or one field of a multi-field message) is one plane, found again by its byte offset.
#include <eccodes.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>

#include "data/ingest/component/source.h"

namespace welkin::ingest_component {
namespace {

// An address: the message's byte offset, and the place of the field in it (GRIB 2 allows several).
constexpr int kOffsetBits = 48;
constexpr int64_t kOffsetMask = (int64_t{1} << kOffsetBits) - 1;
constexpr int64_t kMaxFieldsPerMessage = 4096;

struct CloseFile {
  void operator()(std::FILE* file) const {
    codes_grib_multi_support_reset_file(codes_context_get_default(), file);  // the state is kept by the pointer's value
    std::fclose(file);
  }
};
struct DeleteHandle {
  void operator()(codes_handle* handle) const { codes_handle_delete(handle); }
};
using Handle = std::unique_ptr<codes_handle, DeleteHandle>;

void check(int code, const char* key) {
  if (code != CODES_SUCCESS) throw SourceError(std::string(key) + ": " + codes_get_error_message(code));
}

long get_long(codes_handle* handle, const char* key) {
  long value = 0;
  check(codes_get_long(handle, key, &value), key);
  return value;
}

double get_double(codes_handle* handle, const char* key) {
  double value = 0;
  check(codes_get_double(handle, key, &value), key);
  return value;
}

std::string get_text(codes_handle* handle, const char* key) {
  char text[256] = {};
  size_t length = sizeof(text);
  if (codes_get_string(handle, key, text, &length) != CODES_SUCCESS) return {};
  return std::string(text, strnlen(text, sizeof(text)));
}

// Seconds since 1970-01-01 of the time at which the field holds.
double validity_seconds(codes_handle* handle) {
  using namespace std::chrono;
  const long date = get_long(handle, "validityDate");
  const long time = get_long(handle, "validityTime");
  const year_month_day day{year(static_cast<int>(date / 10000)), month(static_cast<unsigned>(date / 100 % 100)),
                           std::chrono::day(static_cast<unsigned>(date % 100))};
  if (date < 0 || !day.ok() || time < 0 || time > 2400) throw SourceError("a message with an impossible date");
  return static_cast<double>(sys_days(day).time_since_epoch().count()) * 86400.0 +
         static_cast<double>(time / 100 * 3600 + time % 100 * 60);
}

struct Layout {
  int64_t width = 0, height = 0;
  bool columns_first = false, alternating = false, to_west = false;
};

Layout layout_of(codes_handle* handle) {
  const std::string kind = get_text(handle, "gridType");
  if (kind != "regular_ll" && kind != "regular_gg") throw SourceError("gridType " + kind);
  const Layout layout{get_long(handle, "Ni"), get_long(handle, "Nj"), get_long(handle, "jPointsAreConsecutive") != 0,
                      get_long(handle, "alternativeRowScanning") != 0, get_long(handle, "iScansNegatively") != 0};
  const bool sane = layout.width > 0 && layout.height > 0 && layout.width <= WELKIN_INGEST_MAX_AXIS &&
                    layout.height <= WELKIN_INGEST_MAX_AXIS && layout.width * layout.height <= WELKIN_INGEST_MAX_POINTS;
  if (!sane) throw SourceError("a grid of impossible size");
  return layout;
}

std::vector<double> evenly(double first, double step, int64_t count) {
  std::vector<double> points(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) points[static_cast<size_t>(i)] = first + step * static_cast<double>(i);
  return points;
}

std::vector<double> gaussian_latitudes(codes_handle* handle, int64_t height) {
  size_t size = 0;
  check(codes_get_size(handle, "distinctLatitudes", &size), "distinctLatitudes");
  if (size != static_cast<size_t>(height)) throw SourceError("a Gaussian grid whose latitudes do not match Nj");
  std::vector<double> latitude(size);
  check(codes_get_double_array(handle, "distinctLatitudes", latitude.data(), &size), "distinctLatitudes");
  const bool south_first = get_long(handle, "jScansPositively") != 0;
  if ((latitude.front() < latitude.back()) != south_first) std::ranges::reverse(latitude);
  return latitude;
}

// Longitudes run on without a jump, so that a region across the Greenwich meridian stays in order.
Grid grid_of(codes_handle* handle, const Layout& layout) {
  const double west = get_double(handle, "longitudeOfFirstGridPointInDegrees");
  const double east = get_double(handle, "longitudeOfLastGridPointInDegrees");
  double span = std::fmod(layout.to_west ? west - east : east - west, 360.0);
  if (span <= 0 && layout.width > 1) span += 360.0;
  const double step = layout.width > 1 ? span / static_cast<double>(layout.width - 1) : 0.0;
  Grid grid;
  grid.longitude = evenly(west, layout.to_west ? -step : step, layout.width);
  if (get_text(handle, "gridType") == "regular_gg") {
    grid.latitude = gaussian_latitudes(handle, layout.height);
  } else {
    const double first = get_double(handle, "latitudeOfFirstGridPointInDegrees");
    const double last = get_double(handle, "latitudeOfLastGridPointInDegrees");
    grid.latitude =
        evenly(first, layout.height > 1 ? (last - first) / static_cast<double>(layout.height - 1) : 0.0, layout.height);
  }
  return grid;
}

welkin_ingest_variable describe(codes_handle* handle) {
  welkin_ingest_variable variable{};
  const std::string short_name = get_text(handle, "shortName");
  std::string name = get_text(handle, "cfVarName");
  if (name.empty() || name == "unknown") name = short_name;
  if (name.empty() || name == "unknown") name = "param" + std::to_string(get_long(handle, "paramId"));
  // "2t", "10u", "100si": the height is in the name, and GRIB 1 calls the level of such a field surface where GRIB 2 says
  // heightAboveGround.
  const bool height_in_name = !short_name.empty() && short_name[0] >= '0' && short_name[0] <= '9';
  const std::string level_type = height_in_name ? "surface" : get_text(handle, "typeOfLevel");
  copy_text(name, variable.name);
  copy_text(short_name, variable.other_name);
  copy_text(get_text(handle, "name"), variable.long_name);
  copy_text(get_text(handle, "units"), variable.units);
  copy_text(level_type, variable.level_type);
  copy_text("seconds since 1970-01-01 00:00:00", variable.time_units);
  copy_text("proleptic_gregorian", variable.calendar);
  const bool levelled = level_type != "surface" && level_type != "meanSea" && level_type != "unknown" && !level_type.empty();
  variable.level_kind = !levelled                              ? WELKIN_INGEST_LEVEL_NONE
                        : level_type.starts_with("isobaricIn") ? WELKIN_INGEST_LEVEL_HPA
                                                               : WELKIN_INGEST_LEVEL_OTHER;
  return variable;
}

class GribSource final : public Source {
 public:
  explicit GribSource(std::FILE* file) : file_(file) {}

  void scan(Tables& tables) override {
    std::rewind(file_.get());
    codes_grib_multi_support_reset_file(codes_context_get_default(), file_.get());
    int64_t last_offset = -1, field = 0, end = 0;
    while (const Handle handle = next()) {
      const auto offset = static_cast<int64_t>(get_double(handle.get(), "offset"));
      field = offset == last_offset ? field + 1 : 0;
      if (offset < 0 || offset > kOffsetMask || field >= kMaxFieldsPerMessage) throw SourceError("an impossible message offset");
      last_offset = offset;
      end = offset + get_long(handle.get(), "totalLength");
      add_message(tables, handle.get(), (field << kOffsetBits) | offset);
    }
    if (begins_message(end)) throw SourceError("the file ends within a message");
  }

  void read_plane(int64_t address, std::span<float> values) override {
    const int64_t field = address >> kOffsetBits;
    if (address < 0 || field >= kMaxFieldsPerMessage) throw SourceError("an impossible address");
    codes_grib_multi_support_reset_file(codes_context_get_default(), file_.get());
    if (fseeko(file_.get(), address & kOffsetMask, SEEK_SET) != 0) throw SourceError("cannot seek");
    Handle handle;
    for (int64_t i = 0; i <= field; ++i) {
      handle = next();
      if (!handle) throw SourceError("the message is no longer there");
    }
    unpack(handle.get(), values);
  }

 private:
  // True if the rest of the file is the first letters of "GRIB" alone: ecCodes takes them for padding.
  bool begins_message(int64_t end) {
    char rest[4];
    if (fseeko(file_.get(), end, SEEK_SET) != 0) return false;
    const size_t size = std::fread(rest, 1, sizeof(rest), file_.get());
    return size > 0 && size < sizeof(rest) && std::memcmp(rest, "GRIB", size) == 0;
  }

  Handle next() {
    int code = 0;
    Handle handle(codes_handle_new_from_file(nullptr, file_.get(), PRODUCT_GRIB, &code));
    if (code != CODES_SUCCESS && code != CODES_END_OF_FILE) throw SourceError(codes_get_error_message(code));
    return handle;
  }

  void add_message(Tables& tables, codes_handle* handle, int64_t address) {
    const int32_t variable = variable_of(tables, handle);
    if (tables.variables[static_cast<size_t>(variable)].grid < 0) return;
    long member = 0;
    if (codes_get_long(handle, "number", &member) != CODES_SUCCESS) member = 0;
    add_plane(tables, {variable, static_cast<int32_t>(member), level_of(tables.variables[static_cast<size_t>(variable)], handle),
                       validity_seconds(handle), address});
  }

  static double level_of(const welkin_ingest_variable& variable, codes_handle* handle) {
    if (variable.level_kind == WELKIN_INGEST_LEVEL_NONE) return 0.0;
    const double level = get_double(handle, "level");
    return std::string_view(variable.level_type) == "isobaricInPa" ? level / 100.0 : level;
  }

  int32_t variable_of(Tables& tables, codes_handle* handle) {
    const std::string key =
        get_text(handle, "paramId") + "/" + get_text(handle, "typeOfLevel") + "/" + get_text(handle, "md5GridSection");
    if (const auto known = variables_.find(key); known != variables_.end()) return known->second;
    welkin_ingest_variable variable = describe(handle);
    try {
      variable.grid = add_grid(tables.grids, grid_of(handle, layout_of(handle)));
    } catch (const SourceError& problem) {
      variable.grid = -1;
      copy_text(std::string("not on a regular latitude-longitude or Gaussian grid (") + problem.what() + ")", variable.skipped);
    }
    return variables_[key] = add_variable(tables, variable);
  }

  void unpack(codes_handle* handle, std::span<float> values) {
    const Layout layout = layout_of(handle);
    if (static_cast<size_t>(layout.width * layout.height) != values.size()) throw SourceError("a field of another size");
    size_t size = 0;
    check(codes_get_size(handle, "values", &size), "values");
    if (size != values.size()) throw SourceError("the number of values does not match the grid");
    check(codes_set_double(handle, "missingValue", kMissing), "missingValue");
    const bool has_gaps = get_long(handle, "bitmapPresent") != 0;
    raw_.resize(size);
    check(codes_get_double_array(handle, "values", raw_.data(), &size), "values");
    if (size != values.size()) throw SourceError("fewer values than announced");
    for (int64_t j = 0; j < layout.height; ++j) {
      for (int64_t i = 0; i < layout.width; ++i) {
        const double value = raw_[static_cast<size_t>(place(layout, j, i))];
        values[static_cast<size_t>(j * layout.width + i)] =
            has_gaps && value == kMissing ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(value);
      }
    }
  }

  // Index of the point (row j, column i) in the order of the message.
  static int64_t place(const Layout& layout, int64_t j, int64_t i) {
    if (layout.columns_first) return i * layout.height + (layout.alternating && i % 2 == 1 ? layout.height - 1 - j : j);
    return j * layout.width + (layout.alternating && j % 2 == 1 ? layout.width - 1 - i : i);
  }

  static constexpr double kMissing = -1.0e34;  // a number that no field holds

  std::unique_ptr<std::FILE, CloseFile> file_;
  std::map<std::string, int32_t> variables_;
  std::vector<double> raw_;
};

void discard_log(const codes_context*, int, const char*) {}

}  // namespace

std::unique_ptr<Source> open_grib(const char* path) {
  codes_context* context = codes_context_get_default();
  codes_context_set_logging_proc(context, discard_log);  // a library does not print; the codes become errors
  codes_grib_multi_support_on(context);
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) throw SourceError("cannot open the file");
  return std::make_unique<GribSource>(file);
}

}  // namespace welkin::ingest_component
