// SPDX-License-Identifier: Apache-2.0
#include "data/sample/channels/forcing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;
constexpr double kRadian = std::numbers::pi / 180.0;

struct ForcingName {
  std::string_view name;
  Forcing forcing;
};

constexpr std::array<ForcingName, 4> kForcingNames{{{"solar", Forcing::Solar},
                                                    {"solar_daily", Forcing::SolarDaily},
                                                    {"calendar", Forcing::Calendar},
                                                    {"coordinates", Forcing::Coordinates}}};

// Angle of the year, 0 at the start of 1 January.
double year_angle(Calendar calendar, int64_t seconds) {
  const DayOfYear day = day_of_year(calendar, seconds);
  return kTwoPi * day.day / day.days_in_year;
}

double day_angle(int64_t seconds) {
  constexpr int64_t kDay = 86400;
  const int64_t second_of_day = ((seconds % kDay) + kDay) % kDay;
  return kTwoPi * static_cast<double>(second_of_day) / static_cast<double>(kDay);
}

// A field with one value everywhere.
void fill_constant(std::span<float> out, double value) { std::ranges::fill(out, static_cast<float>(value)); }

template <typename Value>
void fill_field(std::span<const double> latitude, std::span<const double> longitude, std::span<float> out, Value&& value) {
  size_t place = 0;
  for (const double lat : latitude) {
    for (const double lon : longitude) out[place++] = static_cast<float>(value(lat * kRadian, lon * kRadian));
  }
}

void fill_calendar(Calendar calendar, int64_t seconds, size_t points, std::span<float> out) {
  const double year = year_angle(calendar, seconds), day = day_angle(seconds);
  const std::array<double, 4> values{std::sin(year), std::cos(year), std::sin(day), std::cos(day)};
  for (size_t c = 0; c < values.size(); ++c) fill_constant(out.subspan(c * points, points), values[c]);
}

void fill_coordinates(std::span<const double> latitude, std::span<const double> longitude, size_t points, std::span<float> out) {
  fill_field(latitude, longitude, out.subspan(0, points), [](double lat, double) { return std::sin(lat); });
  fill_field(latitude, longitude, out.subspan(points, points),
             [](double lat, double lon) { return std::cos(lat) * std::sin(lon); });
  fill_field(latitude, longitude, out.subspan(2 * points, points),
             [](double lat, double lon) { return std::cos(lat) * std::cos(lon); });
}

}  // namespace

double SolarGeometry::cos_zenith(double latitude, double longitude) const {
  return std::sin(latitude) * std::sin(declination) +
         std::cos(latitude) * std::cos(declination) * std::cos(hour_angle + longitude);
}

double SolarGeometry::daily_mean(double latitude) const {
  const double sines = std::sin(latitude) * std::sin(declination), cosines = std::cos(latitude) * std::cos(declination);
  // Half the length of the day as an angle; the polar night and day are its ends.
  const double sunset =
      cosines <= 1e-12 ? (sines > 0 ? std::numbers::pi : 0.0) : std::acos(std::clamp(-sines / cosines, -1.0, 1.0));
  return distance_factor * (sunset * sines + cosines * std::sin(sunset)) / std::numbers::pi;
}

SolarGeometry solar_geometry(Calendar calendar, int64_t seconds) {
  const double g = year_angle(calendar, seconds);
  SolarGeometry sun;
  sun.declination = 0.006918 - 0.399912 * std::cos(g) + 0.070257 * std::sin(g) - 0.006758 * std::cos(2 * g) +
                    0.000907 * std::sin(2 * g) - 0.002697 * std::cos(3 * g) + 0.001480 * std::sin(3 * g);
  // The constant is 0.0000075 in the original; the often copied 0.000075 is a misprint.
  sun.equation_of_time =
      0.0000075 + 0.001868 * std::cos(g) - 0.032077 * std::sin(g) - 0.014615 * std::cos(2 * g) - 0.040849 * std::sin(2 * g);
  sun.distance_factor =
      1.000110 + 0.034221 * std::cos(g) + 0.001280 * std::sin(g) + 0.000719 * std::cos(2 * g) + 0.000077 * std::sin(2 * g);
  sun.hour_angle = day_angle(seconds) - std::numbers::pi + sun.equation_of_time;
  return sun;
}

Forcing parse_forcing(std::string_view name) {
  const auto found = std::ranges::find(kForcingNames, name, &ForcingName::name);
  if (found != kForcingNames.end()) return found->forcing;
  throw ConfigError("data", cat("unknown forcing: forcing=", name), "Choose among solar, solar_daily, calendar, coordinates");
}

std::vector<std::string> channel_names(Forcing forcing) {
  switch (forcing) {
    case Forcing::Solar:
      return {"solar"};
    case Forcing::SolarDaily:
      return {"solar_daily"};
    case Forcing::Calendar:
      return {"year_sin", "year_cos", "day_sin", "day_cos"};
    case Forcing::Coordinates:
      break;
  }
  return {"place_z", "place_y", "place_x"};
}

void fill_forcing(Forcing forcing, Calendar calendar, int64_t seconds, std::span<const double> latitude,
                  std::span<const double> longitude, std::span<float> out) {
  const size_t points = latitude.size() * longitude.size();
  WELKIN_CHECK(out.size() == points * channel_names(forcing).size(), "forcing: wrong size of the output");
  const SolarGeometry sun = solar_geometry(calendar, seconds);
  switch (forcing) {
    case Forcing::Solar:
      fill_field(latitude, longitude, out,
                 [&](double lat, double lon) { return sun.distance_factor * std::max(sun.cos_zenith(lat, lon), 0.0); });
      return;
    case Forcing::SolarDaily:
      fill_field(latitude, longitude, out, [&](double lat, double) { return sun.daily_mean(lat); });
      return;
    case Forcing::Calendar:
      fill_calendar(calendar, seconds, points, out);
      return;
    case Forcing::Coordinates:
      fill_coordinates(latitude, longitude, points, out);
      return;
  }
}

ForcingChannels::ForcingChannels(const std::vector<std::string>& forcings, std::vector<double> latitude,
                                 std::vector<double> longitude, Calendar calendar)
    : latitude_(std::move(latitude)), longitude_(std::move(longitude)), calendar_(calendar) {
  for (const auto& name : forcings) {
    const Forcing forcing = parse_forcing(name);
    if (forcing != Forcing::Calendar && (latitude_.empty() || longitude_.empty())) {
      throw DataError("data", cat("a forcing needs the place of every point, which the file does not say: forcing=", name),
                      "Add the data sets latitude and longitude to the file, or leave the forcing out");
    }
    forcings_.push_back(forcing);
    for (auto& channel : channel_names(forcing)) names_.push_back(std::move(channel));
  }
}

bool ForcingChannels::needs_time() const {
  return std::ranges::any_of(forcings_, [](Forcing forcing) { return forcing != Forcing::Coordinates; });
}

void ForcingChannels::fill(int64_t unix_seconds, const Region& region, std::span<float> out) const {
  const auto rows = static_cast<size_t>(region.extent[0]), columns = static_cast<size_t>(region.extent[1]);
  // The calendar's channels need no place, so any coordinates will do.
  const std::vector<double> nowhere(std::max(rows, columns), 0.0);
  const auto axis = [&](const std::vector<double>& all, int64_t begin, size_t extent) {
    if (all.empty()) return std::span<const double>(nowhere).first(extent);
    WELKIN_CHECK(begin >= 0 && static_cast<size_t>(begin) + extent <= all.size(), "forcing: region outside the sample");
    return std::span<const double>(all).subspan(static_cast<size_t>(begin), extent);
  };
  size_t channel = 0;
  for (const Forcing forcing : forcings_) {
    const size_t count = channel_names(forcing).size();
    fill_forcing(forcing, calendar_, unix_seconds, axis(latitude_, region.begin[0], rows),
                 axis(longitude_, region.begin[1], columns), out.subspan(channel * rows * columns, count * rows * columns));
    channel += count;
  }
}

}  // namespace welkin::data
