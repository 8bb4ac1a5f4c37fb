// SPDX-License-Identifier: Apache-2.0
// Spectra by real Fourier transforms in double.
#include "train/learn/metrics_spectrum.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/fft_rfft.h>
#include <ATen/ops/fft_rfftn.h>
#include <ATen/ops/full.h>
#include <ATen/ops/round.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/error.h"

namespace welkin::train {
namespace {

// A real transform keeps half of the modes: those between the mean and the Nyquist wavenumber stand for two.
at::Tensor multiplicity(int64_t points) {
  at::Tensor twice = at::full({points / 2 + 1}, 2.0, at::kDouble);
  twice[0] = 1.0;
  if (points % 2 == 0) twice[points / 2] = 1.0;
  return twice;
}

// Waves per edge of the longest axis, signed: 0, 1, ..., -2, -1 times the ratio of the edges.
at::Tensor wavenumbers(int64_t points, int64_t longest) {
  const at::Tensor index = at::arange(points, at::kDouble);
  return at::where(index.gt(points / 2), index - points, index).mul(static_cast<double>(longest) / static_cast<double>(points));
}

}  // namespace

at::Tensor zonal_spectrum(const at::Tensor& fields, const at::Tensor& weights) {
  WELKIN_CHECK(fields.dim() == 4 && weights.numel() == fields.size(2), "fields (B, C, H, W) with a weight for each row");
  const at::Tensor wide = fields.detach().to(at::kCPU, at::kDouble);
  const auto points = static_cast<double>(wide.size(3));
  const at::Tensor power = at::square(at::abs(at::fft_rfft(wide))).div(points * points).mul(multiplicity(wide.size(3)));
  return power.mul(weights.to(at::kCPU, at::kDouble).view({1, 1, -1, 1})).mean(2);
}

at::Tensor radial_spectrum(const at::Tensor& boxes) {
  WELKIN_CHECK(boxes.dim() == 5, "boxes (B, C, D, H, W)");
  const at::Tensor wide = boxes.detach().to(at::kCPU, at::kDouble);
  const int64_t d = wide.size(2), h = wide.size(3), w = wide.size(4);
  const int64_t longest = std::max({d, h, w});
  const auto points = static_cast<double>(d * h * w);
  const at::Tensor modes = at::fft_rfftn(wide, c10::nullopt, at::IntArrayRef{2, 3, 4});
  const at::Tensor power = at::square(at::abs(modes)).div(points * points).mul(multiplicity(w));
  const at::Tensor kx = wavenumbers(d, longest).view({-1, 1, 1}), ky = wavenumbers(h, longest).view({1, -1, 1});
  const at::Tensor kz = at::arange(w / 2 + 1, at::kDouble).mul(static_cast<double>(longest) / static_cast<double>(w));
  const at::Tensor shell = at::round(at::sqrt(kx.square() + ky.square() + kz.square())).to(at::kLong).flatten();
  at::Tensor spectrum = at::zeros({wide.size(0), wide.size(1), shell.max().item<int64_t>() + 1}, at::kDouble);
  return spectrum.index_add_(2, shell, power.flatten(2));
}

at::Tensor small_scale_power(const at::Tensor& spectrum, int64_t points) {
  const int64_t first = std::min(points / 4 + 1, spectrum.size(-1));
  return spectrum.narrow(-1, first, spectrum.size(-1) - first).sum(-1);
}

}  // namespace welkin::train
