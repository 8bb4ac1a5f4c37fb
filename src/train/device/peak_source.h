// SPDX-License-Identifier: Apache-2.0
// The peak that a run's MFU refers to: the kept one of this processor (peak_cache.h), or one that is measured now.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "train/device/peak_cache.h"

namespace welkin::train {

class PeakSource {
 public:
  // Returns FLOP/s of one process, the best of the measurements that fit into so many seconds.
  using Measure = std::function<double(double seconds)>;

  // Without a cache (GPUs, no home folder) the peak is measured at the start, in at most `short_seconds`, which the caller
  // chooses. `anew`: a kept peak is replaced. `note` gets the lines to log.
  PeakSource(std::optional<PeakCache> cache, PeakConditions conditions, bool anew, Measure measure,
             std::function<void(const std::string&)> note);

  // The peak in FLOP/s for a model that has reached `model_flops`, each of one process; measured on the first call. A model
  // that is faster than the kept peak shows that its measurement was disturbed: it is repeated.
  double flops(double model_flops, double short_seconds);
  // Returns "measured" or "kept from 2026-11-24".
  std::string origin() const;

 private:
  void measure(double seconds);
  void keep();

  std::optional<PeakCache> cache_;
  PeakConditions conditions_;
  bool anew_;
  Measure measure_;
  std::function<void(const std::string&)> note_;
  double flops_ = 0;
  std::string kept_from_;  // date; empty: measured by this run
};

}  // namespace welkin::train
