// SPDX-License-Identifier: Apache-2.0
// What this machine can do, measured: products of matrices per precision, and memory traffic. And what its processor could do by
// its clock and width, for comparison.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "config/run_config.h"

namespace welkin::train::bench {

struct Peaks {
  double fp32_flops = 0, bf16_flops = 0;  // FLOP/s of the best square product, in this process with its threads and kernels
  double bytes = 0;                       // bytes/s of a copy that no cache holds: read and written
  double theoretical_fp32_flops = 0;      // cores * clock * width; 0 where the clock is not known

  // Of the mode's products.
  double measured(config::AmpMode mode) const { return mode == config::AmpMode::Bf16 ? bf16_flops : fp32_flops; }
};

// About `seconds` for each of three figures. Set-up of the libraries is not counted.
Peaks measure_peaks(c10::Device device, double seconds = 0.4);

// FLOP/s of a processor whose cores do two fused multiply-adds on vectors of `lanes` floats in each cycle.
double theoretical_flops(int64_t cores, double hertz, int64_t lanes);

// The clock in Hz that the text of /proc/cpuinfo names (the fastest core's), 0 where it names none.
double clock_hertz(std::string_view cpuinfo);

}  // namespace welkin::train::bench
