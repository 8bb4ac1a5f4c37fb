// SPDX-License-Identifier: Apache-2.0
// What this machine can do, measured: matmuls per precision, and memory traffic. And what its units could do by
// their clock and width (theoretical_peak.h), for comparison.
#pragma once

#include <c10/core/Device.h>

#include <algorithm>

#include "config/schema/run_config.h"

namespace welkin::bench {

struct Peaks {
  double fp32_flops = 0, bf16_flops = 0;  // FLOP/s of the best square matmul, in this process with its threads and kernels
  double bytes = 0;                       // bytes/s of a copy that no cache holds: read and written
  // By clock and width (theoretical_peak.h); 0 where one of them is not known. Of fp32 on a GPU: of the units that it runs on,
  // TF32 or not.
  double theoretical_fp32_flops = 0, theoretical_bf16_flops = 0;

  // Of the mode's matmuls. Half of either kind has the same units; without fast ones its matmuls are widened, so that a machine
  // is never slower in it than in fp32.
  double measured(config::AmpMode mode) const { return of(mode, fp32_flops, bf16_flops); }
  double theoretical(config::AmpMode mode) const { return of(mode, theoretical_fp32_flops, theoretical_bf16_flops); }

 private:
  static double of(config::AmpMode mode, double fp32, double half) {
    return mode == config::AmpMode::None ? fp32 : std::max(fp32, half);
  }
};

// About `seconds` for each of three figures. Set-up of the libraries is not counted.
Peaks measure_peaks(c10::Device device, double seconds = 0.4);

}  // namespace welkin::bench
