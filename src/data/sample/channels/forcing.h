// SPDX-License-Identifier: Apache-2.0
// Input channels that no file needs to hold, because time and place determine them: the position of the sun, the time of year
// and day, and the point on the sphere. All are of order one, so they enter the model without normalisation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/sample/calendar.h"
#include "data/sample/channels/extra_channels.h"

namespace welkin::data {

// The sun for the whole Earth at one moment: Fourier series of J. W. Spencer, "Fourier series representation of the position of
// the sun", Search 2 (1971) 172. Declination within 0.0006 rad of its mean year, equation of time within 35 s. The leap-year
// cycle adds up to 0.1 degree.
struct SolarGeometry {
  double declination = 0;       // radians north
  double equation_of_time = 0;  // radians, apparent minus mean solar time
  double distance_factor = 1;   // (mean distance / distance)^2, the irradiance in units of the solar constant
  double hour_angle = 0;        // radians west of the Greenwich meridian, of the apparent sun

  // Cosine of the zenith angle at a place in radians; negative at night.
  double cos_zenith(double latitude, double longitude) const;
  // Daily mean at a latitude of max(cos_zenith, 0) * distance_factor.
  double daily_mean(double latitude) const;
};

SolarGeometry solar_geometry(Calendar calendar, int64_t seconds);

enum class Forcing {
  Solar,        // "solar": insolation at the top of the atmosphere / solar constant = distance_factor * max(cos_zenith, 0), in
                // [0, 1.04]
  SolarDaily,   // "solar_daily": its mean over the day, for steps of a day or longer
  Calendar,     // "calendar": sine and cosine of the time of year, sine and cosine of the time of day (UTC)
  Coordinates,  // "coordinates": the unit vector of the place (sin lat, cos lat sin lon, cos lat cos lon)
};

// Throws ConfigError with the known names.
Forcing parse_forcing(std::string_view name);
// Channels of one kind, in order.
std::vector<std::string> channel_names(Forcing forcing);

// The values of one kind at one time on a grid: out is (channel, latitude, longitude). Degrees.
void fill_forcing(Forcing forcing, Calendar calendar, int64_t seconds, std::span<const double> latitude,
                  std::span<const double> longitude, std::span<float> out);

// The kinds of a run, one after another, as extra input channels of a data set.
class ForcingChannels final : public ExtraChannels {
 public:
  // Coordinates of the sample in degrees. Throws ConfigError for unknown names, and DataError when the file says no coordinates
  // and a kind needs them.
  ForcingChannels(const std::vector<std::string>& forcings, std::vector<double> latitude, std::vector<double> longitude,
                  Calendar calendar);

  int64_t count() const override { return static_cast<int64_t>(names_.size()); }
  bool needs_time() const override;  // unless all are coordinates
  const std::vector<std::string>& names() const override { return names_; }
  void fill(int64_t unix_seconds, const Region& region, std::span<float> out) const override;

 private:
  std::vector<Forcing> forcings_;
  std::vector<std::string> names_;
  std::vector<double> latitude_, longitude_;
  Calendar calendar_;
};

}  // namespace welkin::data
