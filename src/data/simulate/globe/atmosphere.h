// SPDX-License-Identifier: Apache-2.0
// A run of the two-layer atmosphere: start in balance, spin up, advance; and its state as the 20 channels of the training files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/simulate/globe/climate.h"
#include "data/simulate/globe/planet.h"
#include "data/simulate/globe/shallow_water.h"

namespace welkin::data::simulate {

inline constexpr int64_t kWeatherChannels = 20;
std::vector<std::string> weather_channel_names();
std::vector<std::string> weather_channel_units();

// Two layers on the Earth at this truncation, stepping so that 6 h are a whole number of steps.
ShallowWaterOptions atmosphere_options(int64_t truncation);

class Atmosphere {
 public:
  // Balanced jets of the season at `second` of the year, disturbed by waves drawn from `key`.
  Atmosphere(int64_t truncation, const Planet& planet, uint64_t key, double second);

  void advance_six_hours();
  double second() const { return second_; }  // of the year; negative before January 1
  const ShallowWater& water() const { return water_; }

  // (channel, height, width) of the grid of `output`, whose truncation is the model's: exact sums of the harmonics.
  void channels(const SphereTransform& output, std::span<float> fields) const;

 private:
  void start(uint64_t key);

  ShallowWater water_;
  Planet planet_;
  Climate climate_;
  double second_;
};

}  // namespace welkin::data::simulate
