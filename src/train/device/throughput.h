// SPDX-License-Identifier: Apache-2.0
// The model's speed relative to the device: FLOPs of its matmuls per second over the rate of a plain matmul in the same
// precision.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "config/schema/run_config.h"

namespace welkin::train {

// FLOP/s of square matmuls in the precision of the run (on a CPU in float32 if that is faster): the best of the matmuls that
// fit into `seconds`, and of at least two.
double measure_peak_flops(c10::Device device, config::AmpMode mode, double seconds);

// Returns "Model: 0.123 TFLOP/s, MFU 45.6 % (peak 0.270 TFLOP/s, measured)"; empty when the model's cost is not known. `origin`
// says where the peak comes from.
std::string throughput_text(double flops_per_second, double peak_flops, const std::string& origin);

}  // namespace welkin::train
