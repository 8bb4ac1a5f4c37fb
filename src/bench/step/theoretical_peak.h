// SPDX-License-Identifier: Apache-2.0
// Theoretical peak of a processor or GPU from its clock and the width of its units, as in a data sheet. Arithmetic on the
// machine's own description; torch-free.
#pragma once

#include <cstdint>
#include <string_view>

namespace welkin::bench {

// FLOP/s of a processor whose cores do two fused multiply-adds on vectors of `lanes` floats in each cycle.
double theoretical_flops(int64_t cores, double hertz, int64_t lanes);

// The clock in Hz from the text of /proc/cpuinfo (the fastest core's), 0 if there is none.
double clock_hertz(std::string_view cpuinfo);

// Ratio of bfloat16 to float32 products that a core does in a cycle, by the instructions in the text of
// /proc/cpuinfo. 1 without such instructions: values are widened then.
double bf16_width(std::string_view cpuinfo);

// The same ratio for products of float32 whose operands are sums of `parts` bfloat16 (0: unsplit operands). With two parts the
// smallest products are omitted: three of four are computed.
double float32_width(double bf16_width, int64_t parts);

struct GpuFacts {
  int64_t multiprocessors = 0;
  double hertz = 0;
  int64_t major = 0, minor = 0;  // compute capability
};
enum class GpuUnits { Vector, Tf32, Half };

// Multiprocessors * multiply-adds per clock * 2 * clock, dense. 0 for unknown compute capabilities.
double theoretical_gpu_flops(const GpuFacts& facts, GpuUnits units);

// Facts of a GPU, from the CUDA runtime that torch has loaded; all 0 without one.
GpuFacts gpu_facts(int64_t index);

}  // namespace welkin::bench
