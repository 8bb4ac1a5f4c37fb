// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/perturbation.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "core/philox.h"
#include "core/text.h"
#include "ops/random/normal_stream.h"
#include "train/forecast/sphere_noise.h"

namespace welkin::train {
namespace {

constexpr std::string_view kForms =
    "gaussian:amplitude=0.05, sphere:amplitude=0.05,length_km=500, bred:amplitude=0.05,cycles=8, or lagged";

[[noreturn]] void refuse_perturbation(const std::string& text) {
  throw ConfigError("forecast", cat("not a perturbation: --perturb=", text), cat("Write it like one of: ", kForms));
}

double perturbation_number(const std::string& whole, std::string_view text, double least, double most) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size() || !(value >= least && value <= most)) refuse_perturbation(whole);
  return value;
}

PerturbationKind kind_named(const std::string& whole, const std::string& name) {
  constexpr std::array<std::pair<std::string_view, PerturbationKind>, 5> kKinds{{{"none", PerturbationKind::None},
                                                                                 {"gaussian", PerturbationKind::Gaussian},
                                                                                 {"sphere", PerturbationKind::Sphere},
                                                                                 {"bred", PerturbationKind::Bred},
                                                                                 {"lagged", PerturbationKind::Lagged}}};
  for (const auto& [known, kind] : kKinds) {
    if (known == name) return kind;
  }
  refuse_perturbation(whole);
}

// A stream of random numbers for every start and member, and for every channel within.
uint64_t noise_key(uint64_t seed, int64_t start_seconds, int64_t member, int64_t channel) {
  return stream_key(seed, cat("forecast.noise.", start_seconds, ".", member, ".", channel));
}

std::vector<double> rows_or_spread(const std::vector<double>& given, int64_t count, double first, double step) {
  std::vector<double> places = given;
  for (int64_t i = 0; given.empty() && i < count; ++i) places.push_back(first + step * static_cast<double>(i));
  return places;
}

}  // namespace

Perturbation parse_perturbation(const std::string& text) {
  Perturbation perturbation;
  if (text.empty()) return perturbation;
  const size_t colon = std::min(text.find(':'), text.size());
  perturbation.kind = kind_named(text, text.substr(0, colon));
  std::istringstream settings(colon < text.size() ? text.substr(colon + 1) : "");
  for (std::string setting; std::getline(settings, setting, ',');) {
    const size_t equals = std::min(setting.find('='), setting.size());
    const std::string name = setting.substr(0, equals);
    const std::string_view value = std::string_view(setting).substr(std::min(equals + 1, setting.size()));
    if (name == "amplitude" && perturbation.kind != PerturbationKind::Lagged) {
      perturbation.amplitude = perturbation_number(text, value, std::numeric_limits<double>::min(), 100);
    } else if (name == "length_km" && perturbation.kind == PerturbationKind::Sphere) {
      perturbation.length_km = perturbation_number(text, value, 1, 20'000);
    } else if (name == "cycles" && perturbation.kind == PerturbationKind::Bred) {
      const double cycles = perturbation_number(text, value, 1, 1000);
      if (cycles != std::floor(cycles)) refuse_perturbation(text);
      perturbation.cycles = static_cast<int64_t>(cycles);
    } else {
      refuse_perturbation(text);
    }
  }
  return perturbation;
}

at::Tensor member_noise(const Perturbation& perturbation, const data::SampleSpec& spec, int64_t channels, uint64_t seed,
                        int64_t start_seconds, int64_t member) {
  const int64_t height = spec.input.shape.at(1), width = spec.input.shape.at(2);
  at::Tensor noise = at::empty({channels, height, width}, at::kFloat);
  const auto plane = static_cast<size_t>(height * width);
  const auto rows = static_cast<double>(std::max<int64_t>(1, height - 1)), columns = static_cast<double>(width);
  std::optional<SphereNoise> sphere;
  if (perturbation.kind == PerturbationKind::Sphere) {
    sphere.emplace(rows_or_spread(spec.latitude, height, 90, -180 / rows),
                   rows_or_spread(spec.longitude, width, 0, 360 / columns), perturbation.length_km);
  }
  for (int64_t channel = 0; channel < channels; ++channel) {
    const uint64_t key = noise_key(seed, start_seconds, member, channel);
    const std::span<float> field(noise.data_ptr<float>() + static_cast<size_t>(channel) * plane, plane);
    if (!sphere) {
      ops::fill_normals(key, 0, static_cast<int64_t>(plane), perturbation.amplitude, field.data());
      continue;
    }
    sphere->fill(key, field);
    std::ranges::transform(field, field.begin(), [&](float value) { return value * static_cast<float>(perturbation.amplitude); });
  }
  return noise;
}

}  // namespace welkin::train
