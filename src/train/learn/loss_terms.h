// SPDX-License-Identifier: Apache-2.0
// What is added to a loss of fields: an error of the global mean, so that what is conserved stays, and an error of the amplitude
// at each wavenumber, so that small scales are not blurred away by a loss that punishes what stands at the wrong place twice.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"
#include "train/learn/loss.h"

namespace welkin::train {

struct LossTerms {
  // For a channel its weight times the square of the difference between the global means of prediction and target.
  at::Tensor conservation{};  // (C) float64 on the device; undefined: none
  // Mean over channels of the sum over zonal wavenumbers m of (A(m) - B(m))^2, A^2 and B^2 the power of prediction and target at
  // m as zonal_spectrum() has it (Subich et al. 2025, arXiv:2501.19374, whose amplitudes are those of spherical harmonics).
  double spectral = 0;
  at::Tensor rows{};   // (H) float64 on the device with mean 1: the area that a row stands for
  bool holes = false;  // points that are NaN in the target are in neither mean, and 0 in both spectra

  bool any() const { return conservation.defined() || spectral > 0; }
};

// Of a run: the keys conservation and spectral_weight. Nothing for boxes. ConfigError for an entry of conservation that fits no
// channel, is no number or is negative.
LossTerms loss_terms(const config::RunConfig& config, const data::SampleSpec& spec, c10::Device device);

// `loss` itself where there are no terms. With a spectral one whole rows must be at hand: parts of a sample give no amplitudes.
LossPtr with_terms(LossPtr loss, LossTerms terms);

}  // namespace welkin::train
