// SPDX-License-Identifier: Apache-2.0
// The lines of `welkin data inspect` about coordinates, in every format: dates, degrees, texts.
#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/printable.h"
#include "core/text.h"
#include "data/cf/coordinates.h"
#include "data/cf/file_times.h"
#include "data/datasets/field_file.h"
#include "data/tools/inspect_hdf5.h"

namespace welkin::data {
namespace {

constexpr size_t kMostLabels = 256;

// Steps longer than 1.5 times the shortest, and whether all go forward.
std::string gaps_text(const FileTimes& times) {
  const std::vector<int64_t>& t = times.seconds;
  int64_t shortest = t[1] - t[0];
  for (size_t i = 0; i + 1 < t.size(); ++i) {
    if (t[i + 1] <= t[i]) return cat(", not increasing after ", format_date(times.calendar, t[i]));
    shortest = std::min(shortest, t[i + 1] - t[i]);
  }
  size_t gaps = 0, first = 0;
  for (size_t i = 0; i + 1 < t.size(); ++i) {
    if ((t[i + 1] - t[i]) * 2 <= shortest * 3) continue;
    if (gaps++ == 0) first = i;
  }
  if (gaps == 0) return "";
  return cat(", ", gaps, gaps == 1 ? " gap, after " : " gaps, the first after ", format_date(times.calendar, t[first]), " (",
             t[first + 1] - t[first], " s)");
}

std::string time_lines(const ArrayFile& file, const std::string& name) {
  try {
    const FileTimes times = read_times(file, name);
    if (times.stored.empty()) return "";
    if (times.seconds.empty()) {
      return cat("    from ", times.stored.front(), " to ", times.stored.back(), ", without units: no dates\n");
    }
    const std::vector<int64_t>& t = times.seconds;
    std::string text = cat("    from ", format_date(times.calendar, t.front()), " to ", format_date(times.calendar, t.back()));
    if (t.size() > 1) text += cat(", first step ", t[1] - t[0], " s", gaps_text(times));
    const bool usual = written_calendar(times.calendar) == Calendar::ProlepticGregorian;
    return text + (usual ? "" : cat(", calendar ", name_of(times.calendar))) + "\n";
  } catch (const DataError& error) {
    return cat("    times cannot be read: ", printable(error.what()), "\n");
  }
}

}  // namespace

std::string coordinate_lines(const ArrayFile& file, const std::string& name) {
  const StoredArrayPtr array = file.array(name);
  if (array->facts().shape.size() != 1) return "";
  if (is_coordinate(file, CoordinateKind::Time, name)) return time_lines(file, name);
  if (!is_coordinate(file, CoordinateKind::Latitude, name) && !is_coordinate(file, CoordinateKind::Longitude, name)) return "";
  const std::vector<double> values = array->read_doubles();
  return values.empty() ? "" : cat("    from ", values.front(), " to ", values.back(), "\n");
}

std::string assumed_latitudes_line(const ArrayFile& file, const std::string& name) {
  if (name != "fields" || file.array(name)->facts().shape.size() != 4) return "";
  std::string note;
  try {
    note = FieldFile(file).facts().place_note;
  } catch (const DataError&) {
    return "";  // training reports the fault
  }
  return note.empty()
             ? ""
             : "    no latitudes: training takes the rows as equally spaced from pole to pole; an array latitude of one value "
               "for each row, in degrees, sets them\n";
}

std::string text_line(const ArrayFile& file, const std::string& name) {
  const auto found = file.text_arrays.find(name);
  if (found == file.text_arrays.end()) return "";
  std::vector<std::string> texts = found->second;
  const bool more = texts.size() > kMostLabels;
  if (more) texts.resize(kMostLabels);
  return cat("    texts: ", printable(join(texts, ", ")), more ? ", ..." : "", "\n");
}

bool is_format_attribute(const ArrayFile& file, const std::string& object, std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames{"REFERENCE_LIST", "DIMENSION_LIST",   "DIMENSION_LABELS",
                                                   "_Netcdf4Dimid",  "_NCProperties",    "_Netcdf4Coordinates",
                                                   "_nc3_strict",    "_ARRAY_DIMENSIONS"};
  if (std::ranges::find(kNames, name) != kNames.end()) return true;
  const auto kind = file.texts(object, "CLASS");
  return (name == "CLASS" || name == "NAME") && !kind.empty() && kind.front() == "DIMENSION_SCALE";
}

}  // namespace welkin::data
