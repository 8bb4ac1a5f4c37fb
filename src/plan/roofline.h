// SPDX-License-Identifier: Apache-2.0
// Roofline arithmetic: FLOPs per byte of an operation, and the peak of a device from its parts.
#pragma once

namespace welkin::plan {

// FLOPs per byte below which a device waits for its memory.
inline double intensity_threshold(double peak_flops, double bytes_per_second) { return peak_flops / bytes_per_second; }

// Element-wise c = a + b: one FLOP for two reads and a write.
inline double addition_intensity(double element_bytes) { return 1 / (3 * element_bytes); }

// (m, k) times (k, n): 2 m n k FLOPs; both factors are read once and the product is written once.
inline double matmul_intensity(double m, double n, double k, double element_bytes) {
  return 2 * m * n * k / (element_bytes * (m * k + k * n + m * n));
}

// `multiply_adds` per clock and multiprocessor; two FLOPs each.
inline double peak_flops(double multiprocessors, double multiply_adds, double clock_hz) {
  return multiprocessors * multiply_adds * 2 * clock_hz;
}

}  // namespace welkin::plan
