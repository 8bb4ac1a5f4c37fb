// SPDX-License-Identifier: Apache-2.0
#include "train/device/throughput.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/stopwatch.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::train {
namespace {

// An edge that is large enough to reach the peak.
int64_t matmul_edge(c10::Device device) { return device.is_cuda() ? 8192 : 768; }

at::ScalarType matmul_dtype(config::AmpMode mode) {
  if (mode == config::AmpMode::None) return at::kFloat;
  return mode == config::AmpMode::Bf16 ? at::kBFloat16 : at::kHalf;
}

// A CPU without fast matmuls in half precision widens them: its peak there is that of float32.
std::vector<config::AmpMode> modes_to_time(c10::Device device, config::AmpMode mode) {
  if (device.is_cuda() || mode == config::AmpMode::None) return {mode};
  return {config::AmpMode::None, mode};
}

// Seconds of one matmul; reading an element waits for the device.
double time_matmul(const at::Tensor& a, const at::Tensor& b) {
  const Stopwatch watch;
  const at::Tensor c = ops::matmul(ops::matmul_operand(a), ops::matmul_operand(b), a.scalar_type());
  c.select(0, 0).select(0, 0).item<float>();
  return watch.seconds();
}

}  // namespace

double measure_peak_flops(c10::Device device, config::AmpMode mode, double seconds) {
  const at::NoGradGuard no_grad;
  double most = 0;
  const std::vector<config::AmpMode> modes = modes_to_time(device, mode);
  for (const config::AmpMode timed : modes) {
    const int64_t edge = matmul_edge(device);
    const at::Tensor a = at::ones({edge, edge}, at::TensorOptions(matmul_dtype(timed)).device(device));
    double best = time_matmul(a, a);  // the first pays for set-up
    const Stopwatch watch;
    do best = std::min(best, time_matmul(a, a));
    while (watch.seconds() < seconds / static_cast<double>(modes.size()));
    const auto n = static_cast<double>(edge);
    most = std::max(most, 2 * n * n * n / best);
  }
  return most;
}

std::string throughput_text(double flops_per_second, double peak_flops, const std::string& origin) {
  if (flops_per_second <= 0) return {};
  char text[160];
  std::snprintf(text, sizeof text, "Model: %.4g TFLOP/s, MFU %.1f %% (peak %.4g TFLOP/s, %s)", flops_per_second * 1e-12,
                100 * flops_per_second / peak_flops, peak_flops * 1e-12, origin.c_str());
  return text;
}

}  // namespace welkin::train
