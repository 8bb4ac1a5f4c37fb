// SPDX-License-Identifier: Apache-2.0
// How cosmologists judge a predicted box: power spectrum and its ratio to the target's, correlation by wavenumber, equilateral
// bispectrum, distribution of values, and the number of peaks. Means over crops; all of it beside the same of the target.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/sample/dataset.h"
#include "parallel/comm/group.h"

namespace welkin::train {

class BoxStatistics {
 public:
  // Values are those that the model sees. ConfigError for data that are no boxes.
  explicit BoxStatistics(const data::SampleSpec& spec);

  // Bins and thresholds follow the first crop of all. Members that add crops of their own call it before, the first with its
  // first batch of targets.
  void share_bins(const parallel::Group& replicas, const at::Tensor& target);
  // (B, C, D, H, W) of cubes, any device.
  void add(const at::Tensor& target, const at::Tensor& prediction);

  // Adds the sums of members that added different crops. Every member calls it, then json().
  void add_up(const parallel::Group& replicas);

  // {"crops", "channels": {name: {"power": {"target": [...], "prediction": [...]}, "correlation": [...], "bispectrum": {...},
  //  "distribution": {"edges": [...], "target": [...], "prediction": [...]}, "peaks": {"above": [...], "target": [...],
  //  "prediction": [...]}}}}: spectra by the rounded length of the wave vector in waves per edge (metrics_spectrum.h), the
  // bispectrum of three such wave vectors of equal length (R. Scoccimarro, Phys. Rev. D 92 (2015) 083532: by products of fields
  // that keep one shell), densities of the distribution, peaks per crop that no neighbour of 26 exceeds. Bins and thresholds are
  // in deviations about the mean of the first target.
  std::string json() const;

 private:
  struct Side {
    at::Tensor power, bispectrum, counts, peaks;  // (C, ...) float64 sums
  };
  std::vector<at::Tensor*> sums();
  void find_bins(const at::Tensor& crop);
  void add_side(Side& side, const at::Tensor& fields, const at::Tensor& modes);
  at::Tensor shell_sums(const at::Tensor& values) const;
  at::Tensor equilateral(const at::Tensor& modes) const;

  const data::SampleSpec& spec_;
  at::Tensor shells_;  // (D, H, W) int64
  int64_t num_shells_ = 0;
  std::vector<at::Tensor> triangles_;  // of shell 1, 2, ...: their number, ()
  int64_t crops_ = 0;
  std::vector<double> mean_, deviation_;  // of the first crop, by channel; empty before it
  Side target_, prediction_;
  at::Tensor cross_;  // (C, K)
};

}  // namespace welkin::train
