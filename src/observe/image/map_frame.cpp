// SPDX-License-Identifier: Apache-2.0
#include "observe/image/map_frame.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "observe/image/lettering.h"
#include "observe/image/outline_data.h"

namespace welkin::observe::image {
namespace {

constexpr double kAround = 360;

// The mean step, or nothing if steps differ.
std::optional<double> even_step(std::span<const double> places) {
  if (places.size() < 2) return std::nullopt;
  const double step = (places.back() - places.front()) / static_cast<double>(places.size() - 1);
  for (size_t i = 1; i < places.size(); ++i) {
    if (!(std::abs(places[i] - places[i - 1] - step) <= 0.2 * std::abs(step))) return std::nullopt;
  }
  return step;
}

// Removes jumps at the globe's seam: 350, 0 becomes 350, 360.
std::vector<double> unwrapped(std::span<const double> longitude) {
  std::vector<double> places(longitude.begin(), longitude.end());
  for (size_t i = 1; i < places.size(); ++i) places[i] = places[i - 1] + std::remainder(places[i] - longitude[i - 1], kAround);
  return places;
}

std::vector<int> backwards(size_t count) {
  std::vector<int> places(count);
  for (size_t i = 0; i < count; ++i) places[i] = static_cast<int>(count - 1 - i);
  return places;
}

// For each of the evenly spaced rows from north to south, the row at the nearest latitude. `latitude` is monotonic.
std::vector<int> nearest_rows(std::span<const double> latitude, double north, double south) {
  const size_t count = latitude.size();
  std::vector<int> rows(count);
  for (size_t i = 0; i < count; ++i) {
    const double at = std::lerp(north, south, (static_cast<double>(i) + 0.5) / static_cast<double>(count));
    const auto nearest = std::ranges::min_element(latitude, {}, [&](double place) { return std::abs(place - at); });
    rows[i] = static_cast<int>(nearest - latitude.begin());
  }
  return rows;
}

bool set_rows(MapFrame& frame, std::span<const double> latitude) {
  const bool is_on_earth = std::ranges::all_of(latitude, [](double degrees) { return std::abs(degrees) <= 90; });  // no NaN
  if (latitude.size() < 2 || !is_on_earth) return false;
  const bool north_first = latitude.front() > latitude.back();
  for (size_t i = 1; i < latitude.size(); ++i) {
    if (latitude[i] == latitude[i - 1] || (latitude[i] < latitude[i - 1]) != north_first) return false;
  }
  const auto beyond = [](double edge, double inner) { return std::clamp(edge + (edge - inner) / 2, -90.0, 90.0); };
  const size_t last = latitude.size() - 1;
  const double first_edge = beyond(latitude[0], latitude[1]), last_edge = beyond(latitude[last], latitude[last - 1]);
  frame.north = std::max(first_edge, last_edge);
  frame.south = std::min(first_edge, last_edge);
  if (!even_step(latitude)) {
    frame.row_of = nearest_rows(latitude, frame.north, frame.south);
  } else if (!north_first) {
    frame.row_of = backwards(latitude.size());
  }
  return true;
}

bool set_columns(MapFrame& frame, const std::vector<double>& longitude) {
  const auto step = even_step(longitude);
  if (!step || !(std::abs(*step) > 0)) return false;
  const double half = std::abs(*step) / 2;
  frame.west = std::min(longitude.front(), longitude.back()) - half;
  frame.east = std::max(longitude.front(), longitude.back()) + half;
  if (!(frame.east - frame.west <= kAround + 1e-6) || !(std::abs(frame.west) < 1e6)) return false;
  // The outlines cover one turn around the globe.
  const double turns = frame.west < -kAround || frame.west >= kAround ? std::floor(frame.west / kAround) * kAround : 0;
  frame.west -= turns, frame.east -= turns;
  if (*step < 0) frame.column_of = backwards(longitude.size());
  return true;
}

int16_t number_at(std::string_view bytes, size_t index) {
  return static_cast<int16_t>(static_cast<uint8_t>(bytes[2 * index]) | static_cast<uint8_t>(bytes[2 * index + 1]) << 8);
}

// The outlines of land in degrees.
const std::vector<Polyline>& outlines() {
  static const std::vector<Polyline> all = [] {
    const std::string_view bytes = outline_bytes();
    std::vector<Polyline> lines;
    for (size_t at = 0; 2 * at + 1 < bytes.size();) {
      const auto count = static_cast<size_t>(number_at(bytes, at++));
      Polyline& line = lines.emplace_back();
      for (size_t i = 0; i < count; ++i, at += 2)
        line.push_back({number_at(bytes, at) / 100.0, number_at(bytes, at + 1) / 100.0});
    }
    return lines;
  }();
  return all;
}

// Finds where a line from `from` to `to` enters and leaves the rectangle, as fractions of it (Liang and Barsky, 1984). Nothing
// if it passes by.
std::optional<std::pair<double, double>> inside_share(Point from, Point to, const Rect& rect) {
  double enters = 0, leaves = 1;
  const auto clip = [&](double step, double room) {
    if (step == 0) return room >= 0;
    const double share = room / step;
    if (step < 0) {
      enters = std::max(enters, share);
    } else {
      leaves = std::min(leaves, share);
    }
    return enters <= leaves;
  };
  const double dx = to.x - from.x, dy = to.y - from.y;
  const bool crosses = clip(-dx, from.x - rect.x) && clip(dx, rect.right() - from.x) && clip(-dy, from.y - rect.y) &&
                       clip(dy, rect.bottom() - from.y);
  return crosses ? std::optional(std::pair(enters, leaves)) : std::nullopt;
}

class MapPicture {
 public:
  MapPicture(const Rect& picture, const MapFrame& frame) : picture_(picture), frame_(frame) {}

  double x(double longitude) const {
    return picture_.x + picture_.width * (longitude - frame_.west) / (frame_.east - frame_.west);
  }
  double y(double latitude) const {
    return picture_.y + picture_.height * (frame_.north - latitude) / (frame_.north - frame_.south);
  }

  // Adds the part inside of a line that is moved eastwards by `turn`.
  void add(const Polyline& line, double turn, std::vector<Polyline>& out) const {
    const Rect inner{picture_.x, picture_.y, picture_.width, picture_.height};
    for (size_t i = 1; i < line.size(); ++i) {
      const Point from{x(line[i - 1].x + turn), y(line[i - 1].y)}, to{x(line[i].x + turn), y(line[i].y)};
      const auto share = inside_share(from, to, inner);
      if (!share) continue;
      const auto at = [&](double s) { return Point{std::lerp(from.x, to.x, s), std::lerp(from.y, to.y, s)}; };
      out.push_back({at(share->first), at(share->second)});
    }
  }

 private:
  const Rect& picture_;
  const MapFrame& frame_;
};

// The first of these steps with at most `most` multiples in so many degrees.
double degree_step(double degrees, double most) {
  for (const double step : {1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0}) {
    if (degrees / step <= most) return step;
  }
  return 90;
}

std::string degree_text(double degrees, const char* positive, const char* negative) {
  const double size = std::abs(degrees);
  const bool has_side = size > 0 && size != 180;
  return cat(size, has_side ? (degrees > 0 ? positive : negative) : "");
}

}  // namespace

std::optional<MapFrame> map_frame(std::span<const double> latitude, std::span<const double> longitude) {
  MapFrame frame;
  const bool has_both = set_rows(frame, latitude) && set_columns(frame, unwrapped(longitude));
  return has_both ? std::optional(frame) : std::nullopt;
}

std::vector<float> in_map_order(const MapFrame& frame, std::span<const float> values, int columns) {
  const size_t width = static_cast<size_t>(columns), rows = values.size() / width;
  WELKIN_CHECK(columns > 0 && (frame.row_of.empty() || frame.row_of.size() == rows) &&
                   (frame.column_of.empty() || frame.column_of.size() == width),
               "a map of another grid");
  std::vector<float> ordered;
  ordered.reserve(values.size());
  for (size_t row = 0; row < rows; ++row) {
    const size_t from = frame.row_of.empty() ? row : static_cast<size_t>(frame.row_of[row]);
    for (size_t column = 0; column < width; ++column)
      ordered.push_back(values[from * width + (frame.column_of.empty() ? column : static_cast<size_t>(frame.column_of[column]))]);
  }
  return ordered;
}

bool has_outlines() { return !outline_bytes().empty(); }

void draw_outlines(Raster& raster, const Rect& picture, const MapFrame& frame) {
  constexpr Color kHalo{255, 255, 255};
  const MapPicture map(picture, frame);
  std::vector<Polyline> lines;
  for (const Polyline& line : outlines()) {
    for (const double turn : {-kAround, 0.0, kAround}) map.add(line, turn, lines);
  }
  if (lines.empty()) return;
  const double width = std::clamp(picture.width / 700.0, 0.5, 1.6);
  raster.stroke(lines, 2.4 * width, kHalo);  // dark lines alone would be invisible on dark fields
  raster.stroke(lines, width, kInk);
}

void draw_degrees(Raster& raster, const Rect& picture, const MapFrame& frame) {
  constexpr double kSize = 7, kMark = 4;
  const MapPicture map(picture, frame);
  const double across = degree_step(frame.east - frame.west, std::max(picture.width / 75.0, 2.0));
  for (double degrees = std::ceil(frame.west / across) * across; degrees <= frame.east; degrees += across) {
    const double shown = degrees > 180 ? degrees - kAround : degrees < -180 ? degrees + kAround : degrees;
    raster.fill({std::clamp(static_cast<int>(map.x(degrees)), picture.x, picture.right() - 1), picture.bottom() + 1, 1, 3}, kInk);
    draw_text(raster, {map.x(degrees), picture.bottom() + kMark + 3}, degree_text(shown, "E", "W"),
              {.size_px = kSize, .along = Anchor::Middle, .across = Anchor::Start});
  }
  const double up = degree_step(frame.north - frame.south, std::max(picture.height / 40.0, 2.0));
  for (double degrees = std::ceil(frame.south / up) * up; degrees <= frame.north; degrees += up) {
    const double y = std::clamp(map.y(degrees), picture.y + kSize / 2, picture.bottom() - kSize / 2);
    raster.fill({picture.x - 4, std::clamp(static_cast<int>(map.y(degrees)), picture.y, picture.bottom() - 1), 3, 1}, kInk);
    draw_text(raster, {picture.x - kMark - 3.0, y}, degree_text(degrees, "N", "S"), {.size_px = kSize, .along = Anchor::End});
  }
}

}  // namespace welkin::observe::image
