// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/globe/weather_statistics.h"

#include <cmath>
#include <utility>

#include "data/formats/npy_file.h"

namespace welkin::data::simulate {
namespace {

constexpr double kUnit = 0x1.0p20;  // 2^43 / 2^20 = 8e6 times a million steps is still far from the limit

}  // namespace

WeatherStatistics::WeatherStatistics(int64_t channels, int64_t points, int64_t years)
    : channels_(channels), points_(points), years_(static_cast<size_t>(years)), field_(static_cast<size_t>(channels * points)) {}

WeatherStatistics::Year WeatherStatistics::begin_year() const {
  const auto channels = static_cast<size_t>(channels_);
  return {.sum = std::vector<double>(channels),
          .squares = std::vector<double>(channels),
          .field = std::vector<int64_t>(field_.size())};
}

void WeatherStatistics::add(Year& year, std::span<const float> fields) const {
  for (int64_t c = 0; c < channels_; ++c) {
    double sum = 0.0, squares = 0.0;
    for (int64_t i = c * points_; i < (c + 1) * points_; ++i) {
      const double value = fields[static_cast<size_t>(i)];
      sum += value;
      squares += value * value;
      year.field[static_cast<size_t>(i)] += std::llrint(value * kUnit);
    }
    year.sum[static_cast<size_t>(c)] += sum;
    year.squares[static_cast<size_t>(c)] += squares;
  }
  ++year.steps;
}

void WeatherStatistics::finish_year(int64_t index, Year year) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < field_.size(); ++i) field_[i] += year.field[i];
  year.field = {};
  years_[static_cast<size_t>(index)] = std::move(year);
}

void WeatherStatistics::write(const std::filesystem::path& folder, int64_t height, int64_t width) const {
  int64_t steps = 0;
  for (const Year& year : years_) steps += year.steps;
  const double count = static_cast<double>(steps) * static_cast<double>(points_);
  std::vector<float> means, deviations, time_means;
  for (int64_t c = 0; c < channels_; ++c) {
    double sum = 0.0, squares = 0.0;
    for (const Year& year : years_) sum += year.sum[static_cast<size_t>(c)], squares += year.squares[static_cast<size_t>(c)];
    const double mean = sum / count;
    means.push_back(static_cast<float>(mean));
    deviations.push_back(static_cast<float>(std::sqrt(std::max(0.0, squares / count - mean * mean))));
  }
  for (const int64_t sum : field_)
    time_means.push_back(static_cast<float>(static_cast<double>(sum) / kUnit / static_cast<double>(steps)));
  write_npy(folder / "global_means.npy", {1, channels_, 1, 1}, std::span<const float>(means));
  write_npy(folder / "global_stds.npy", {1, channels_, 1, 1}, std::span<const float>(deviations));
  write_npy(folder / "time_means.npy", {1, channels_, height, width}, std::span<const float>(time_means));
}

}  // namespace welkin::data::simulate
