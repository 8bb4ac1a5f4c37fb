// SPDX-License-Identifier: Apache-2.0
// Terms added to a loss of fields: an error of the global mean, so that conserved quantities stay, and an error of the
// amplitude at each wavenumber, so that a loss that punishes misplaced small scales twice does not blur them away.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"
#include "train/learn/loss.h"

namespace welkin::train {

struct LossTerms {
  // The weight per channel of the square of the difference between the global means of prediction and target.
  at::Tensor conservation{};  // (C) float64 on the device; undefined: none
  // Weight of the mean over channels of the sum over zonal wavenumbers m of (A(m) - B(m))^2; A^2, B^2: power of prediction and
  // target by zonal_spectrum() (Subich et al. 2025, arXiv:2501.19374, with amplitudes of spherical harmonics).
  double spectral = 0;
  at::Tensor rows{};   // (H) float64 on the device with mean 1: the area that a row stands for
  bool holes = false;  // points that are NaN in the target are in neither mean, and 0 in both spectra

  bool any() const { return conservation.defined() || spectral > 0; }
};

// The terms of a run: the keys conservation and spectral_weight. None for boxes. ConfigError for an entry of conservation that
// fits no channel, is no number or is negative.
LossTerms loss_terms(const config::RunConfig& config, const data::SampleSpec& spec, c10::Device device);

// Returns `loss` itself if there are no terms. A spectral term needs whole rows: parts of a sample give no amplitudes.
LossPtr with_terms(LossPtr loss, LossTerms terms);

}  // namespace welkin::train
