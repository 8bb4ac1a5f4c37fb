// SPDX-License-Identifier: Apache-2.0
#include "bench/step/peaks.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bench/step/theoretical_peak.h"
#include "core/stopwatch.h"
#include "ops/base/instruction_set.h"
#include "ops/gemm/gemm_provider.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::bench {
namespace {

void finish_work_on(const at::Tensor& values) { values.flatten().select(0, 0).item<float>(); }

// A matmul of ones takes a GPU less power than a step's, so its clock would be higher than in any step.
at::Tensor factor(int64_t edge, at::ScalarType dtype, c10::Device device) {
  if (device.is_cpu()) return at::ones({edge, edge}, dtype);
  const at::Tensor numbers = at::arange(edge * edge, at::TensorOptions(at::kFloat).device(device));
  return at::sin(numbers).view({edge, edge}).to(dtype);
}

double matmul_flops(int64_t edge, at::ScalarType dtype, c10::Device device, double seconds) {
  const at::Tensor a = factor(edge, dtype, device);
  double best = 0;
  const Stopwatch budget;
  do {
    const Stopwatch watch;
    finish_work_on(ops::matmul(ops::matmul_operand(a), ops::matmul_operand(a), dtype));
    const auto n = static_cast<double>(edge);
    best = std::max(best, 2 * n * n * n / watch.seconds());
  } while (budget.seconds() < seconds);
  return best;
}

// Tries rising sizes within the budget: a processor without matmuls in a type takes seconds for a large one.
double best_matmul(at::ScalarType dtype, c10::Device device, double seconds) {
  const std::vector<int64_t> edges =
      device.is_cuda() ? std::vector<int64_t>{2048, 4096, 8192} : std::vector<int64_t>{256, 512, 1024, 2048};
  double best = 0;
  matmul_flops(edges.front(), dtype, device, 0);  // pays for set-up
  const Stopwatch budget;
  for (const int64_t edge : edges) {
    const auto n = static_cast<double>(edge);
    const bool is_too_long = best > 0 && 2 * n * n * n / best > seconds;
    if (is_too_long || budget.seconds() > seconds) break;
    best = std::max(best, matmul_flops(edge, dtype, device, seconds / static_cast<double>(edges.size())));
  }
  return best;
}

double copy_bytes_per_second(c10::Device device, double seconds) {
  const int64_t count = (device.is_cuda() ? int64_t{1} << 28 : int64_t{1} << 25);  // 128 MiB on a CPU, beyond its caches
  const at::Tensor from = at::ones({count}, at::TensorOptions(at::kFloat).device(device));
  const at::Tensor to = at::ones({count}, from.options());
  double best = 0;
  const Stopwatch budget;
  do {
    const Stopwatch watch;
    to.copy_(from);
    finish_work_on(to);
    best = std::max(best, 2 * static_cast<double>(from.nbytes()) / watch.seconds());
  } while (budget.seconds() < seconds);
  return best;
}

int64_t lanes_of(ops::InstructionSet set) {
  switch (set) {
    case ops::InstructionSet::Avx512:
    case ops::InstructionSet::Amx:
      return 16;
    case ops::InstructionSet::Avx2:
      return 8;
    default:
      return 4;
  }
}

void add_theory_of_processor(Peaks& peaks) {
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const double vectors = theoretical_flops(at::get_num_threads(), clock_hertz(text), lanes_of(ops::best_instruction_set()));
  const double narrow = bf16_width(text);
  peaks.theoretical_fp32_flops = vectors * float32_width(narrow, ops::float32_parts());
  peaks.theoretical_bf16_flops = vectors * narrow;
}

void add_theory_of_gpu(Peaks& peaks, c10::Device device) {
  const GpuFacts facts = gpu_facts(device.index());
  const bool uses_tf32 = at::globalContext().allowTF32CuBLAS();
  peaks.theoretical_fp32_flops = theoretical_gpu_flops(facts, uses_tf32 ? GpuUnits::Tf32 : GpuUnits::Vector);
  peaks.theoretical_bf16_flops = theoretical_gpu_flops(facts, GpuUnits::Half);
}

}  // namespace

Peaks measure_peaks(c10::Device device, double seconds) {
  const at::NoGradGuard no_grad;
  Peaks peaks;
  peaks.fp32_flops = best_matmul(at::kFloat, device, seconds);
  peaks.bf16_flops = best_matmul(at::kBFloat16, device, seconds);
  peaks.bytes = copy_bytes_per_second(device, seconds);
  device.is_cpu() ? add_theory_of_processor(peaks) : add_theory_of_gpu(peaks, device);
  return peaks;
}

}  // namespace welkin::bench
