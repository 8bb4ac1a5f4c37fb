// SPDX-License-Identifier: Apache-2.0
#include "data/cf/coordinates.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numbers>
#include <span>

#include "core/error.h"
#include "core/printable.h"
#include "core/text.h"
#include "data/storage/axis_names.h"

namespace welkin::data {
namespace {

constexpr std::string_view kPlaceholder = "This is a netCDF dimension but not a netCDF variable";

struct CoordinateWords {
  AxisKind kind;
  std::string_view axis;
  std::array<std::string_view, 6> units;

  std::span<const std::string_view> names() const { return array_names(kind); }
  std::string_view name() const { return common_name(kind); }  // ours, and CF's standard_name
};

constexpr std::array kCoordinateWords{
    CoordinateWords{AxisKind::Time, "T", {}},
    CoordinateWords{AxisKind::Latitude, "Y", {"degrees_north", "degree_north", "degree_n", "degrees_n", "degreen", "degreesn"}},
    CoordinateWords{AxisKind::Longitude, "X", {"degrees_east", "degree_east", "degree_e", "degrees_e", "degreee", "degreese"}}};

const CoordinateWords& words_of(CoordinateKind kind) { return kCoordinateWords[static_cast<size_t>(kind)]; }

std::string lower_text(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string attribute_of(const ArrayFile& file, const std::string& name, std::string_view attribute) {
  const auto texts = file.texts(name, attribute);
  return texts.empty() ? "" : lower_text(texts.front());
}

bool is_radian(std::string_view units) { return units == "radian" || units == "radians" || units == "rad"; }

bool contains_word(std::span<const std::string_view> words, std::string_view text) {
  return !text.empty() && std::ranges::find(words, text) != words.end();
}

// Certainty that the array is this coordinate; 0: it is not. A row number or a distance in metres is no latitude.
int rank_of(const ArrayFile& file, const std::string& name, CoordinateKind kind) {
  const CoordinateWords& words = words_of(kind);
  const std::string units = attribute_of(file, name, "units");
  const bool time = kind == CoordinateKind::Time;
  const bool has_units = time ? units.find(" since ") != std::string::npos : contains_word(words.units, units);
  const bool fits = units.empty() || has_units || (!time && (units.starts_with("degree") || is_radian(units)));
  if (!fits || is_dimension_placeholder(file, name)) return 0;
  const std::string standard = attribute_of(file, name, "standard_name");
  if (standard == words.name()) return 6;
  if (!standard.empty()) return 0;
  const bool named = is_among(words.names(), name);
  if (named && has_units) return 5;
  if (has_units && attribute_of(file, name, "axis") == lower_text(std::string(words.axis))) return 4;
  if (!time && has_units) return 3;
  if (named && (!time || lower_text(name).find("time") != std::string::npos)) return 2;
  if (is_among(words.names(), attribute_of(file, name, "NAME"))) return 2;
  return has_units ? 1 : 0;
}

void refuse_place(const ArrayFile& file, const std::string& name) {
  throw DataError("data", cat("not a valid latitude or longitude: path=", file.path.string(), ", dataset=", name),
                  "Make the file again");
}

// Converts to degrees. Throws for places beyond the globe.
void check_places(const ArrayFile& file, const std::string& name, CoordinateKind kind, std::vector<double>& values) {
  if (is_radian(attribute_of(file, name, "units"))) {
    for (double& value : values) value *= 180 / std::numbers::pi;
  }
  const double most = kind == CoordinateKind::Latitude ? 90.01 : 720.0;
  const bool valid = std::ranges::all_of(values, [&](double value) { return std::isfinite(value) && std::abs(value) <= most; });
  if (!valid) refuse_place(file, name);
}

std::vector<double> read_axis(const ArrayFile& file, const std::string& name, int64_t length) {
  std::vector<double> values = file.array(name)->read_doubles();
  if (static_cast<int64_t>(values.size()) == length) return values;
  throw DataError("data",
                  cat("a coordinate does not fit the fields: path=", file.path.string(), ", dataset=", name,
                      ", values=", values.size(), ", expected=", length),
                  "Make the file again");
}

// The array of places of every point: that of the right shape that is known best.
std::string find_places_of_points(const ArrayFile& file, CoordinateKind kind, const Extents& shape) {
  std::string best;
  int best_rank = 0;
  for (const auto& [name, array] : file.arrays) {
    const int rank = array->facts().shape == shape ? rank_of(file, name, kind) : 0;
    if (rank > best_rank) best_rank = rank, best = name;
  }
  return best;
}

// Values along one axis; empty where the places change along the other axis.
std::vector<double> axis_of_points(const std::vector<double>& values, CoordinateKind kind, const Extents& shape) {
  const auto rows = static_cast<size_t>(shape[0]), columns = static_cast<size_t>(shape[1]);
  const bool of_rows = kind == CoordinateKind::Latitude;
  std::vector<double> axis(of_rows ? rows : columns);
  constexpr double kSame = 1e-4;  // degrees: float32 has 7 digits
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      const double value = values[i * columns + j];
      const double first = of_rows ? values[i * columns] : values[j];
      if (!(std::abs(value - first) <= kSame)) return {};
      axis[of_rows ? i : j] = first;
    }
  }
  return axis;
}

}  // namespace

bool is_dimension_placeholder(const ArrayFile& file, const std::string& name) {
  const auto texts = file.texts(name, "NAME");
  return !texts.empty() && texts.front().starts_with(kPlaceholder);
}

bool is_coordinate(const ArrayFile& file, CoordinateKind kind, const std::string& name) {
  return name == words_of(kind).name() || rank_of(file, name, kind) > 0;
}

std::string find_coordinate(const ArrayFile& file, CoordinateKind kind, int64_t length) {
  std::string ours(words_of(kind).name());
  const bool has_ours = file.has(ours) && file.array(ours)->facts().shape.size() == 1 && !is_dimension_placeholder(file, ours);
  if (has_ours && (kind == CoordinateKind::Time || rank_of(file, ours, kind) > 0)) return ours;
  std::string best;
  int best_rank = 0;
  for (const auto& [name, array] : file.arrays) {
    const int rank = array->facts().shape == Extents{length} ? rank_of(file, name, kind) : 0;
    if (rank > best_rank) best_rank = rank, best = name;
  }
  return best;
}

PlaceAxis read_places(const ArrayFile& file, CoordinateKind kind, const Extents& shape) {
  const int64_t length = kind == CoordinateKind::Latitude ? shape[0] : shape[1];
  PlaceAxis places;
  std::string name = find_coordinate(file, kind, length);
  if (!name.empty()) {
    places.degrees = read_axis(file, name, length);
  } else {
    name = find_places_of_points(file, kind, shape);
    if (name.empty()) return places;
    places.degrees = axis_of_points(file.array(name)->read_doubles(), kind, shape);
    if (places.degrees.empty()) {
      places.problem = cat("the array ", printable(name), " changes along both axes");
      return places;
    }
  }
  check_places(file, name, kind, places.degrees);
  return places;
}

std::vector<std::string> find_channel_names(const ArrayFile& file, const std::string& object, int64_t channels) {
  if (std::vector<std::string> texts = file.texts(object, "channels"); !texts.empty()) return texts;
  const auto fits = [&](const std::vector<std::string>& texts) { return static_cast<int64_t>(texts.size()) == channels; };
  for (const std::string_view name : array_names(AxisKind::Channel)) {
    if (std::vector<std::string> texts = file.texts(object, name); fits(texts)) return texts;
  }
  for (const std::string_view name : array_names(AxisKind::Channel)) {
    const auto found = file.text_arrays.find(name);
    if (found != file.text_arrays.end() && fits(found->second)) return found->second;
  }
  return {};
}

}  // namespace welkin::data
