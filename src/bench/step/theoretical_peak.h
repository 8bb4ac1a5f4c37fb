// SPDX-License-Identifier: Apache-2.0
// What a processor or a GPU could do by its clock and the width of its units: the peak of a data sheet, computed. Arithmetic on
// what the machine says of itself; torch-free.
#pragma once

#include <cstdint>
#include <string_view>

namespace welkin::bench {

// FLOP/s of a processor whose cores do two fused multiply-adds on vectors of `lanes` floats in each cycle.
double theoretical_flops(int64_t cores, double hertz, int64_t lanes);

// The clock in Hz that the text of /proc/cpuinfo names (the fastest core's), 0 where it names none.
double clock_hertz(std::string_view cpuinfo);

// How many times as many products of bfloat16 as of float32 a core does in a cycle, by the instructions that the text of
// /proc/cpuinfo lists. 1 where it has none: they are widened then.
double bf16_width(std::string_view cpuinfo);

// The same for products of float32 whose operands are taken as sums of so many bfloat16 (0: as they are). Of two parts the
// smallest products are left out: three of four are made.
double float32_width(double bf16_width, int64_t parts);

struct GpuFacts {
  int64_t multiprocessors = 0;
  double hertz = 0;
  int64_t major = 0, minor = 0;  // compute capability
};
enum class GpuUnits { Vector, Tf32, Half };

// Multiprocessors * multiply-adds per clock * 2 * clock, dense. 0 for capabilities that are not known here.
double theoretical_gpu_flops(const GpuFacts& facts, GpuUnits units);

// Of a GPU, from the CUDA runtime that torch has loaded; all 0 where there is none.
GpuFacts gpu_facts(int64_t index);

}  // namespace welkin::bench
