// SPDX-License-Identifier: Apache-2.0
// The matmuls of a ViT's linear layers, ours beside aten's on the same operands, in turns, best of several: of one thread by its
// CPU time, of more by the clock on the wall. Forward, gradient by the input, gradient by the weight.
// usage: bench_matmuls [bf16|highest|high|medium] [repeats] [threads]
#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "cpu_seconds.h"
#include "ops/base/large_blocks.h"
#include "ops/gemm/gemm_provider.h"
#include "ops/gemm/mixed_matmul.h"

namespace {

using welkin::bench::cpu_seconds;

struct LayerShape {
  int64_t rows, in, out;
};

constexpr LayerShape kLayers[] = {{4050, 384, 384},  {4050, 384, 1536},  {4050, 1536, 384},
                                  {4050, 1280, 384}, {4050, 1536, 6144}, {2048, 2048, 2048}};

double wall_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double seconds_of(const std::function<at::Tensor()>& matmul) {
  const auto now = at::get_num_threads() == 1 ? cpu_seconds : wall_seconds;
  const double start = now();
  matmul();
  return now() - start;
}

// GFLOP/s of both on a matmul of (m, k) by (k, n).
void compare(const at::Tensor& a, const at::Tensor& b, int repeats) {
  double own = 1e9, aten = 1e9;
  for (int i = 0; i < repeats; ++i) {
    own = std::min(own, seconds_of([&] { return welkin::ops::matmul(a, b, a.scalar_type()); }));
    aten = std::min(aten, seconds_of([&] { return at::mm(a, b); }));
  }
  const double flops = 2e-9 * static_cast<double>(a.size(0) * a.size(1) * b.size(1));
  std::printf(" %7.0f %7.0f |", flops / own, flops / aten);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 3 ? std::atoi(argv[3]) : 1;
  at::set_num_threads(threads);
  welkin::ops::use_page_heap();  // as a run of ours has it, with THP_MEM_ALLOC_ENABLE=1
  const std::string form = argc > 1 ? argv[1] : "bf16";
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 5;
  const auto precision = welkin::ops::parse_float32_precision(form);
  if (precision) welkin::ops::set_float32_matmul({}, *precision);
  const at::ScalarType type = precision ? at::kFloat : at::kBFloat16;
  std::printf("%s, %d threads, GFLOP/s of ours and aten's: forward | by the input | by the weight\n", form.c_str(), threads);
  for (const LayerShape& layer : kLayers) {
    const at::Tensor x = at::randn({layer.rows, layer.in}).to(type), w = at::randn({layer.out, layer.in}).to(type);
    const at::Tensor grad = at::randn({layer.rows, layer.out}).to(type);
    std::printf("%6ld x %4ld -> %4ld |", layer.rows, layer.in, layer.out);
    compare(x, w.t(), repeats);
    compare(grad, w, repeats);
    compare(grad.t(), x, repeats);
    std::printf("\n");
  }
}
