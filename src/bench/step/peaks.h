// SPDX-License-Identifier: Apache-2.0
// Measured peaks of this machine: matmuls per precision, and memory traffic. For comparison, the theoretical peaks by
// clock and width of its units (theoretical_peak.h).
#pragma once

#include <c10/core/Device.h>

#include <algorithm>

#include "config/schema/run_config.h"

namespace welkin::bench {

struct Peaks {
  double fp32_flops = 0, bf16_flops = 0;  // FLOP/s of the best square matmul, in this process with its threads and kernels
  double bytes = 0;                       // bytes/s of a copy beyond all caches: read and written
  // By clock and width (theoretical_peak.h); 0 where one of them is not known. For fp32 on a GPU: the units in use, TF32 or
  // not.
  double theoretical_fp32_flops = 0, theoretical_bf16_flops = 0;

  // FLOP/s of the mode's matmuls. bf16 and fp16 use the same units. Without fast units their matmuls are widened, so a machine
  // is never slower in them than in fp32.
  double measured(config::AmpMode mode) const { return of(mode, fp32_flops, bf16_flops); }
  double theoretical(config::AmpMode mode) const { return of(mode, theoretical_fp32_flops, theoretical_bf16_flops); }

 private:
  static double of(config::AmpMode mode, double fp32, double half) {
    return mode == config::AmpMode::None ? fp32 : std::max(fp32, half);
  }
};

// Takes about `seconds` for each of three figures. Set-up of the libraries is not counted.
Peaks measure_peaks(c10::Device device, double seconds = 0.4);

}  // namespace welkin::bench
