// SPDX-License-Identifier: Apache-2.0
// How members of an ensemble differ at their start, as the flag --perturb says it: "gaussian:amplitude=0.05",
// "sphere:amplitude=0.05,length_km=500", "bred:amplitude=0.05,cycles=8", "lagged". Amplitudes are in standard deviations of a
// channel over the training data, whatever it is normalised by (SampleSpec::input_spread).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "data/sample/dataset.h"

namespace welkin::train {

enum class PerturbationKind {
  None,
  Gaussian,  // white noise
  Sphere,    // random fields of a given length (sphere_noise.h)
  Bred,      // differences that grew over some steps (Z. Toth and E. Kalnay, Bull. Amer. Meteor. Soc. 74 (1993) 2317)
  Lagged,    // member m begins m steps of the forecast earlier
};

struct Perturbation {
  PerturbationKind kind = PerturbationKind::None;
  double amplitude = 0.05;
  double length_km = 500;
  int64_t cycles = 8;  // of breeding, each a step of the forecast

  bool is_noise() const { return kind == PerturbationKind::Gaussian || kind == PerturbationKind::Sphere; }
};

// ConfigError for an unknown perturbation.
Perturbation parse_perturbation(const std::string& text);

// (C, H, W) in standard deviations of each channel, on the CPU, for a member of the start at that time: a function of these and
// the seed alone. Gaussian noise for Gaussian and Bred, whose first cycle begins with it.
at::Tensor member_noise(const Perturbation& perturbation, const data::SampleSpec& spec, int64_t channels, uint64_t seed,
                        int64_t start_seconds, int64_t member);

}  // namespace welkin::train
