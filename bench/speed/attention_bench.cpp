// SPDX-License-Identifier: Apache-2.0
// Attention as the ViT has it (rows of a linear layer, heads transposed to the front), ours beside aten's on the same operands:
// CPU time of one thread, in turns, best of several. Also ours without the tiles of AMX where these come in, which may be the
// float32 kernel. High and medium are of float32 (ops/gemm/gemm_provider.h). usage: bench_attention [fp32|bf16|high|medium]
// [repeats] [alone]
#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "cpu_seconds.h"
#include "ops/attention/attention.h"
#include "ops/base/instruction_set.h"
#include "ops/base/large_blocks.h"
#include "ops/gemm/gemm_provider.h"

namespace {

using welkin::bench::cpu_seconds;
using welkin::bench::PassTimes;
using welkin::ops::InstructionSet;

struct BenchShape {
  int64_t heads, tokens, head_dim;
};

constexpr BenchShape kBenchShapes[] = {{16, 4050, 48}, {12, 4050, 64}, {8, 4050, 96}, {16, 405, 48}};

using Form = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

void measure(const Form& form, const std::vector<at::Tensor>& leaves, const at::Tensor& grad, PassTimes& best) {
  const double start = cpu_seconds();
  const at::Tensor out = form(leaves);
  const double middle = cpu_seconds();
  torch::autograd::grad({out}, leaves, {grad});
  best.forward = std::min(best.forward, middle - start);
  best.backward = std::min(best.backward, cpu_seconds() - middle);
}

void print(const char* name, const PassTimes& times) {
  std::printf("  %s %7.1f | %7.1f", name, 1e3 * times.forward, 1e3 * times.backward);
}

at::Tensor own(const std::vector<at::Tensor>& x) { return welkin::ops::attention(x[0], x[1], x[2]); }

at::Tensor atens(const std::vector<at::Tensor>& x) { return at::scaled_dot_product_attention(x[0], x[1], x[2]); }

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  welkin::ops::use_page_heap();  // as a run of ours has it, with THP_MEM_ALLOC_ENABLE=1
  const std::string form = argc > 1 ? argv[1] : "bf16";
  const auto precision = welkin::ops::parse_float32_precision(form);
  if (precision) welkin::ops::set_float32_matmul({}, *precision);
  const auto type = form == "fp32" || precision ? at::kFloat : at::kBFloat16;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 4;
  const bool alone = argc > 3;
  const InstructionSet best_set = welkin::ops::instruction_set();
  const bool has_tiles = best_set == InstructionSet::Amx && form != "fp32";
  std::printf("heads x tokens x head dim: forward | backward in ms of CPU time\n");
  for (const BenchShape& shape : kBenchShapes) {
    const auto values = [&] {
      return at::randn({1, shape.tokens, shape.heads, shape.head_dim}).to(type).transpose(1, 2).detach();
    };
    std::vector<at::Tensor> leaves;
    for (int i = 0; i < 3; ++i) leaves.push_back(values().requires_grad_(true));
    const at::Tensor grad = values();
    PassTimes tiles, vectors, aten;
    for (int i = 0; i < repeats; ++i) {
      measure(own, leaves, grad, tiles);
      if (alone) continue;
      measure(atens, leaves, grad, aten);
      if (!has_tiles) continue;
      welkin::ops::set_instruction_set(InstructionSet::Avx512);
      measure(own, leaves, grad, vectors);
      welkin::ops::set_instruction_set(best_set);
    }
    std::printf("%2ld x %4ld x %2ld", shape.heads, shape.tokens, shape.head_dim);
    print("ours", tiles);
    if (!alone) print("aten", aten);
    if (!alone && has_tiles && type == at::kBFloat16) print("without tiles", vectors);
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}
