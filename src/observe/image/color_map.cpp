// SPDX-License-Identifier: Apache-2.0
#include "observe/image/color_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace welkin::observe::image {
namespace {

// Every fifth entry of the 256 of Turbo (A. Mikhailov, Google, 2019, Apache-2.0). Linear interpolation is off by at most 1.2 of
// 255.
constexpr std::array<uint32_t, 52> kTurbo{
    0x30123b, 0x36215f, 0x3b2f80, 0x3f3e9c, 0x424bb5, 0x4559cb, 0x4666dd, 0x4773eb, 0x4680f6, 0x458cfd, 0x4099ff,
    0x38a5fb, 0x2fb2f4, 0x27bee9, 0x1fc9dd, 0x1ad4d0, 0x18ddc2, 0x1ae4b6, 0x22ebaa, 0x2ff19b, 0x3ff68a, 0x52fa7a,
    0x65fd69, 0x79fe59, 0x8bff4b, 0x9cfe40, 0xa9fb39, 0xb7f735, 0xc3f134, 0xd0ea34, 0xdbe236, 0xe5d938, 0xeecf3a,
    0xf5c53a, 0xfaba39, 0xfdae35, 0xfea130, 0xfe932a, 0xfc8423, 0xf9751d, 0xf46617, 0xef5811, 0xe84b0c, 0xe14109,
    0xd83706, 0xce2d04, 0xc32503, 0xb71d02, 0xa91601, 0x9b0f01, 0x8b0902, 0x7a0403};

// Every fifteenth entry of viridis (S. van der Walt and N. Smith, 2015, CC0).
constexpr std::array<uint32_t, 18> kViridis{0x440154, 0x481769, 0x472a7a, 0x433d84, 0x3d4e8a, 0x355e8d,
                                            0x2e6d8e, 0x297b8e, 0x23898e, 0x1f978b, 0x21a585, 0x2eb37c,
                                            0x46c06f, 0x65cb5e, 0x89d548, 0xb0dd2f, 0xd8e219, 0xfde725};

Color from_table(std::span<const uint32_t> table, double share) {
  const double position = share * static_cast<double>(table.size() - 1);
  const auto below = std::min(static_cast<size_t>(position), table.size() - 2);
  const double weight = position - static_cast<double>(below);
  const auto channel = [&](int shift) {
    const double a = (table[below] >> shift) & 255u, b = (table[below + 1] >> shift) & 255u;
    return static_cast<uint8_t>(a + weight * (b - a) + 0.5);  // to the nearest: never negative
  };
  return {channel(16), channel(8), channel(0)};
}

uint8_t srgb_byte(double linear) {
  const double x = std::clamp(linear, 0.0, 1.0);
  const double encoded = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
  return static_cast<uint8_t>(std::lround(255 * encoded));
}

// B. Ottosson, "A perceptual color space for image processing" (2020, bottosson.github.io/posts/oklab).
Color from_oklab(double lightness, double a, double b) {
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {srgb_byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          srgb_byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          srgb_byte(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

// Equal lightness on both sides of the middle. Colour increases first, then darkness.
Color diverging(double share) {
  const double away = 2 * share - 1, strength = std::abs(away);
  const double lightness = 0.975 - 0.60 * std::pow(strength, 1.15);
  const double chroma = 0.30 * strength * (1 - 0.58 * strength);
  const double hue = away < 0 ? 4.45 : 0.52;  // radians: blue, red
  return from_oklab(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
}

}  // namespace

Color color_at(ColorMap map, double share) {
  if (std::isnan(share)) return kMissingGray;
  const double inside = std::clamp(share, 0.0, 1.0);
  switch (map) {
    case ColorMap::Turbo:
      return from_table(kTurbo, inside);
    case ColorMap::Viridis:
      return from_table(kViridis, inside);
    case ColorMap::Diverging:
      return diverging(inside);
  }
  return kMissingGray;
}

ColorScale scale_for(ColorMap map, std::span<const float> values, std::optional<double> low, std::optional<double> high) {
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    smallest = std::min<double>(smallest, value);
    largest = std::max<double>(largest, value);
  }
  if (smallest > largest) smallest = largest = 0;  // no finite values
  if (map == ColorMap::Diverging) {
    largest = std::max(std::abs(smallest), std::abs(largest));
    smallest = -largest;
  }
  ColorScale scale{map, low.value_or(smallest), high.value_or(largest)};
  if (!(scale.low < scale.high)) {
    const double widening = std::max(std::abs(scale.low) * 1e-3, 1e-6);
    scale = {map, scale.low - widening, scale.low + widening};
  }
  return scale;
}

}  // namespace welkin::observe::image
