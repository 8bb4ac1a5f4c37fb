// SPDX-License-Identifier: Apache-2.0
// The U-Net's convolutions, layer by layer, ours beside aten's on the same operands: CPU time of one thread, the two in turns,
// best of several. Where aten multiplies bfloat16 number by number, ours in float32 stand in its place.
// usage: bench_convolutions [batch] [fp32|bf16] [repeats] [layer]
#include <ATen/Parallel.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cpu_seconds.h"
#include "ops/base/instruction_support.h"
#include "ops/convolution/convolution.h"

namespace {

using welkin::bench::cpu_seconds;
using welkin::bench::PassTimes;
using welkin::ops::ConvolutionParams;
using welkin::ops::LeakyRelu;

struct BenchLayer {
  const char* name;
  bool up;
  int64_t in, out, edge;  // of the input
  bool input_gradient;
  double slope;
};

constexpr BenchLayer kBenchLayers[] = {
    {"down1", false, 4, 64, 64, false, 0.01},   {"down2", false, 64, 128, 32, true, 0.01},
    {"down3", false, 128, 256, 16, true, 0.01}, {"down4", false, 256, 512, 8, true, 0.01},
    {"down5", false, 512, 512, 4, true, 0.01},  {"down6", false, 512, 512, 2, true, 0.01},
    {"up6", true, 512, 512, 1, true, 0.0},      {"up5", true, 1024, 512, 2, true, 0.0},
    {"up4", true, 1024, 256, 4, true, 0.0},     {"up3", true, 512, 128, 8, true, 0.0},
    {"up2", true, 256, 64, 16, true, 0.0},      {"last", true, 128, 5, 32, true, 1.0},
};

using Form = at::Tensor (*)(at::TensorList, const at::Tensor&, const at::Tensor&, const ConvolutionParams&, const LeakyRelu&);

void measure(Form form, const std::vector<at::Tensor>& leaves, const BenchLayer& layer, PassTimes& best) {
  const ConvolutionParams halving{{2, 2, 2}, {1, 1, 1}};
  const double start = cpu_seconds();
  const at::Tensor out = form(leaves[0], leaves[1], leaves[2], halving, {layer.slope});
  const double middle = cpu_seconds();
  const at::Tensor grad = out.detach();
  std::vector<at::Tensor> wanted(leaves.begin() + (layer.input_gradient ? 0 : 1), leaves.end());
  const double begun = cpu_seconds();
  torch::autograd::grad({out}, wanted, {grad});
  best.forward = std::min(best.forward, middle - start);
  best.backward = std::min(best.backward, cpu_seconds() - begun);
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const int64_t batch = argc > 1 ? std::atoll(argv[1]) : 4;
  const auto type = argc > 2 && std::strcmp(argv[2], "bf16") == 0 ? at::kBFloat16 : at::kFloat;
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 4;
  const char* const only = argc > 4 ? argv[4] : nullptr;
  const bool beside_float = type == at::kBFloat16 && !welkin::ops::cpu_multiplies_bf16();
  const char* other_name = beside_float ? "fp32" : "aten";
  PassTimes own_sum{0, 0}, other_sum{0, 0};
  std::printf("%-6s %21s %14s fwd | bwd  (ms and GF/s of CPU time, nominal FLOPs)\n", "layer", "ours fwd | bwd", other_name);
  for (const BenchLayer& layer : kBenchLayers) {
    if (only != nullptr && std::strcmp(only, layer.name) != 0) continue;
    const auto last = [](const at::Tensor& x) { return x.contiguous(at::MemoryFormat::ChannelsLast3d); };
    const at::Tensor x = at::randn({batch, layer.in, layer.edge, layer.edge, layer.edge}).to(type);
    const at::Tensor taps = at::randn({4, 4, 4, layer.in, layer.out}).mul_(0.02);
    const at::Tensor weight = layer.up ? taps.permute({3, 4, 0, 1, 2}) : taps.permute({4, 3, 0, 1, 2});
    const at::Tensor bias = at::randn({layer.out});
    const auto leaf = [](const at::Tensor& t) { return t.detach().requires_grad_(true); };
    const std::vector<at::Tensor> ours{leaf(layer.in > 4 ? last(x) : x), leaf(weight), leaf(bias)};
    const Form own_form = layer.up ? welkin::ops::transposed_convolution3d : welkin::ops::convolution3d;
    const Form aten_form = layer.up ? welkin::ops::transposed_convolution3d_reference : welkin::ops::convolution3d_reference;
    const std::vector<at::Tensor> others =
        beside_float ? std::vector<at::Tensor>{leaf(ours[0].to(at::kFloat)), ours[1], ours[2]}
                     : std::vector<at::Tensor>{leaf(last(x)), leaf(last(weight.to(type))), leaf(bias.to(type))};
    PassTimes own, other;
    for (int i = 0; i < repeats; ++i) {
      measure(own_form, ours, layer, own);
      measure(beside_float ? own_form : aten_form, others, layer, other);
    }
    const auto coarse = static_cast<double>(layer.up ? layer.edge : layer.edge / 2);
    const double gf = 2e-9 * 64 * static_cast<double>(layer.in * layer.out * batch) * coarse * coarse * coarse;
    const double back = layer.input_gradient ? 2 : 1;
    std::printf("%-6s %7.1f %4.0f|%7.1f %4.0f %8.1f %4.0f|%7.1f %4.0f\n", layer.name, 1e3 * own.forward, gf / own.forward,
                1e3 * own.backward, back * gf / own.backward, 1e3 * other.forward, gf / other.forward, 1e3 * other.backward,
                back * gf / other.backward);
    std::fflush(stdout);
    own_sum = {own_sum.forward + own.forward, own_sum.backward + own.backward};
    other_sum = {other_sum.forward + other.forward, other_sum.backward + other.backward};
  }
  std::printf("all: ours %.3f + %.3f s, %s %.3f + %.3f s, ratio %.2f\n", own_sum.forward, own_sum.backward, other_name,
              other_sum.forward, other_sum.backward,
              (other_sum.forward + other_sum.backward) / (own_sum.forward + own_sum.backward));
  return 0;
}
