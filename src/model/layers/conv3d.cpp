// SPDX-License-Identifier: Apache-2.0
// Both convolutions. A weight lies in memory as (taps, in, out), as the CPU kernels read it; its logical shape is PyTorch's.
#include "model/layers/conv3d.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <ostream>
#include <utility>

#include "model/base/init.h"
#include "ops/base/autocast.h"

namespace welkin::model {
namespace {

void initialise_conv(const Layer& layer, const at::Tensor& weight, const at::Tensor& bias, const ConvInit& initial,
                     uint64_t seed) {
  fill_normal(weight, seed, layer.path_of("weight"), initial.deviation);
  if (initial.bias) {
    fill_constant(bias, *initial.bias);
    return;
  }
  // fan_in as in PyTorch, which takes dim 1 as the input of a transposed convolution too.
  const auto fan_in = static_cast<double>(weight[0].numel());
  fill_uniform(bias, seed, layer.path_of("bias"), 1.0 / std::sqrt(fan_in));
}

void print_conv(std::ostream& stream, const char* kind, int64_t in_channels, int64_t out_channels) {
  stream << kind << "(" << in_channels << ", " << out_channels << ", kernel_size=(4, 4, 4), stride=(2, 2, 2), padding=(1, 1, 1))";
}

}  // namespace

BoxConvolution::BoxConvolution(std::string path, int64_t in_channels, int64_t out_channels, const ConvInit& initial,
                               bool is_transposed)
    : LocalLayer(std::move(path)), initial_(initial), is_transposed_(is_transposed) {
  const at::Tensor taps = at::empty({kKernel, kKernel, kKernel, in_channels, out_channels});
  weight = register_parameter("weight", is_transposed ? taps.permute({3, 4, 0, 1, 2}) : taps.permute({4, 3, 0, 1, 2}));
  bias = register_parameter("bias", at::empty({out_channels}));
}

LocalRule BoxConvolution::rule() const {
  return {
      .kernel = {kKernel, kKernel, kKernel}, .stride = kRule.stride, .padding = kRule.padding, .is_transposed = is_transposed_};
}

at::Tensor BoxConvolution::forward(at::TensorList x_BCDHW, const ops::LeakyRelu& leaky_relu) const {
  if (!on_blocks) return placed(x_BCDHW, {.padding = kRule.padding, .padding_end = kRule.padding, .activates = true}, leaky_relu);
  Tensors x;  // cast to the type of the matmul, which is also the type that is sent
  for (const at::Tensor& part : x_BCDHW) x.push_back(ops::cast_operand(part, ops::OperatorClass::Matmul));
  return on_blocks(x,
                   {.place = [&](const Tensors& piece, const ops::PiecePlacement& at) { return placed(piece, at, leaky_relu); },
                    .activate = [&](at::Tensor made) { return ops::leaky_relu_in_place(std::move(made), leaky_relu); },
                    .memory =
                        [&](const Tensors& block, const ops::BoxShape& cells) {
                          return is_transposed_ ? ops::transposed_convolution3d_memory(block, weight, bias, cells, leaky_relu)
                                                : ops::convolution3d_memory(block, weight, bias, cells, leaky_relu);
                        }});
}

at::Tensor BoxConvolution::placed(at::TensorList x_BCDHW, const ops::PiecePlacement& placement,
                                  const ops::LeakyRelu& leaky_relu) const {
  const ops::ConvolutionParams rule{kRule.stride, placement.padding, placement.padding_end};
  const ops::LeakyRelu end = placement.activates ? leaky_relu : ops::LeakyRelu{};
  return is_transposed_ ? ops::transposed_convolution3d(x_BCDHW, weight, bias, rule, end, placement.into)
                        : ops::convolution3d(x_BCDHW, weight, bias, rule, end, placement.into);
}

void BoxConvolution::initialise(uint64_t seed) { initialise_conv(*this, weight, bias, initial_, seed); }

void StridedConv3d::pretty_print(std::ostream& stream) const { print_conv(stream, "Conv3d", weight.size(1), weight.size(0)); }

void TransposedConv3d::pretty_print(std::ostream& stream) const {
  print_conv(stream, "ConvTranspose3d", weight.size(0), weight.size(1));
}

}  // namespace welkin::model
