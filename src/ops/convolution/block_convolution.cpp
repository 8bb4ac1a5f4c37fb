// SPDX-License-Identifier: Apache-2.0
// Sizes in comments: B boxes, I and O channels in and out, n points and m = n/2 + 1 blocks of an axis, q the place in a block.
#include "ops/convolution/block_convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <utility>

#include "ops/base/once_differentiable.h"
#include "ops/convolution/bias_leaky_relu.h"
#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

using Sizes = std::vector<int64_t>;

constexpr auto kBlocksLast = at::MemoryFormat::ChannelsLast3d;
constexpr int64_t kBlockPoints = 8, kTaps = 4, kOne = 1;

bool has_block_kernels(const at::Tensor& x) {
  return device_ops().blocks.to_blocks != nullptr && x.device().type() == device_ops().blocks.device;
}

// Applies bias and leaky ReLU (which may be absent) to a convolution, in place.
void finish(const at::Tensor& x, const at::Tensor& bias, double slope) {
  if (bias_leaky_relu_supports(x, bias, slope)) return device_ops().leaky_relu.forward(x, bias, slope);
  x.add_(bias.to(x.scalar_type()).view({-1, 1, 1, 1}));
  leaky_relu_in_place(x, {slope});
}

// Gradients before the leaky ReLU, and of the bias. `out` is undefined without a leaky ReLU.
LeakyReluGradients before_end(const at::Tensor& grad_out, const at::Tensor& out, const at::Tensor& bias, double slope) {
  if (out.defined() && bias_leaky_relu_supports(out, bias, slope)) return device_ops().leaky_relu.backward(grad_out, out, slope);
  if (!out.defined() && bias_leaky_relu_supports(grad_out, bias, slope))
    return {.grad_x = grad_out, .grad_bias = device_ops().leaky_relu.column_sums(grad_out)};
  const at::Tensor grad = out.defined() ? at::where(out.gt(0), grad_out, grad_out.mul(slope)) : grad_out;
  const auto sum_type = bias.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;  // a sum of many numbers: never 16 bits
  return {.grad_x = grad, .grad_bias = grad.sum(at::IntArrayRef({0, 2, 3, 4}), false, sum_type)};
}

// Weight (O, I, 4, 4, 4), tap 2 t + q of an axis: (O, (q, I), t, t, t).
Sizes split_taps(const at::Tensor& weight) { return {weight.size(0), weight.size(1), 2, 2, 2, 2, 2, 2}; }

at::Tensor strided_weight(const at::Tensor& weight, at::ScalarType type) {
  const int64_t out = weight.size(0), in = weight.size(1);
  at::Tensor blocks = at::empty({out, kBlockPoints * in, 2, 2, 2}, weight.options().dtype(type), kBlocksLast);
  blocks.view({out, 2, 2, 2, in, 2, 2, 2}).copy_(weight.reshape(split_taps(weight)).permute({0, 3, 5, 7, 1, 2, 4, 6}));
  return blocks;
}

at::Tensor strided_weight_gradient(const at::Tensor& grad, const at::Tensor& weight) {
  const int64_t out = weight.size(0), in = weight.size(1);
  at::Tensor whole = at::empty(weight.sizes(), weight.options());
  whole.view(split_taps(weight)).copy_(grad.view({out, 2, 2, 2, in, 2, 2, 2}).permute({0, 4, 5, 1, 6, 2, 7, 3}));
  return whole;
}

// Weight (I, O, 4, 4, 4), tap q + 2 (1 - t): ((q, O), I, t, t, t).
at::Tensor transposed_weight(const at::Tensor& weight, at::ScalarType type) {
  const int64_t in = weight.size(0), out = weight.size(1);
  at::Tensor blocks = at::empty({kBlockPoints * out, in, 2, 2, 2}, weight.options().dtype(type), kBlocksLast);
  const at::Tensor taps = weight.reshape(split_taps(weight)).flip({2, 4, 6});
  blocks.view({2, 2, 2, out, in, 2, 2, 2}).copy_(taps.permute({3, 5, 7, 1, 0, 2, 4, 6}));
  return blocks;
}

// Adds `grad` to the gradient of the inputs of `whole` from `first` on.
void add_transposed_weight_gradient(const at::Tensor& grad, int64_t first, const at::Tensor& whole) {
  const int64_t in = grad.size(1), out = whole.size(1);
  const at::Tensor taps = grad.view({2, 2, 2, out, in, 2, 2, 2}).permute({4, 3, 5, 0, 6, 1, 7, 2});
  whole.view(split_taps(whole)).narrow(0, first, in).copy_(taps.flip({2, 4, 6}));
}

struct PartGradients {
  at::Tensor x, weight;
};

// For a convolution of 2 x 2 x 2 taps and stride 1.
PartGradients unit_stride_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight, int64_t padding,
                                   bool wants_x, bool wants_weight) {
  if (!wants_x && !wants_weight) return {};
  const Sizes ones(3, kOne), paddings(3, padding), zeros(3, 0);
  auto [grad_x, grad_weight, none] = at::convolution_backward(grad, x, weight, std::nullopt, ones, paddings, ones, false, zeros,
                                                              1, {wants_x, wants_weight, false});
  return {.x = std::move(grad_x), .weight = std::move(grad_weight)};
}

struct BlockConvolution : torch::autograd::Function<BlockConvolution> {
  // Without `second`, x has one part.
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& first,
                            const std::optional<at::Tensor>& second, const at::Tensor& weight, const at::Tensor& bias,
                            const ConvolutionCall& call) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    RECORD_FUNCTION("welkin::block_convolution", std::vector<c10::IValue>());
    const double slope = call.leaky_relu.slope;
    const bool is_strided = call.kind == ConvolutionKind::Strided;
    std::vector<at::Tensor> parts{first.contiguous(kBlocksLast)};
    if (second) parts.push_back(second->contiguous(kBlocksLast));
    const at::Tensor of_blocks =
        is_strided ? strided_weight(weight, first.scalar_type()) : transposed_weight(weight, first.scalar_type());
    at::Tensor out;
    if (is_strided) {
      out = at::conv3d(to_blocks(join_channels(parts)), of_blocks).contiguous(kBlocksLast);
      finish(out, bias, slope);
    } else {
      out = from_blocks(at::conv3d(join_channels(parts), of_blocks, {}, 1, 1), bias, slope);
    }
    context->save_for_backward(
        {parts[0], second ? parts[1] : at::Tensor(), weight, bias, of_blocks, slope == 1 ? at::Tensor() : out});
    context->saved_data["is_strided"] = is_strided;
    context->saved_data["slope"] = slope;
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    once_differentiable("convolution");
    RECORD_FUNCTION("welkin::block_convolution_backward", std::vector<c10::IValue>());
    const auto saved = context->get_saved_variables();
    std::vector<at::Tensor> parts{saved[0]};
    if (saved[1].defined()) parts.push_back(saved[1]);
    const auto ended = before_end(grads[0].contiguous(kBlocksLast), saved[5], saved[3], context->saved_data["slope"].toDouble());
    std::vector<at::Tensor> of_x(2);
    const bool wants_weight = context->needs_input_grad(parts.size());
    const auto wants_x = [&](size_t part) { return context->needs_input_grad(part); };
    const at::Tensor of_weight = context->saved_data["is_strided"].toBool()
                                     ? strided_backward(ended.grad_x, parts, saved[2], saved[4], wants_x, wants_weight, of_x)
                                     : transposed_backward(ended.grad_x, parts, saved[2], saved[4], wants_x, wants_weight, of_x);
    return {of_x[0], of_x[1], of_weight, ended.grad_bias, at::Tensor()};
  }

  // Returns the weight's gradient; gradients of the parts of x go into of_x.
  template <typename Wants>
  static at::Tensor strided_backward(const at::Tensor& grad, const std::vector<at::Tensor>& parts, const at::Tensor& weight,
                                     const at::Tensor& of_blocks, const Wants& wants_x, bool wants_weight,
                                     std::vector<at::Tensor>& of_x) {
    const bool wants_any = wants_x(0) || (parts.size() == 2 && wants_x(1));
    const at::Tensor blocks = wants_weight || wants_any ? to_blocks(join_channels(parts)) : at::Tensor();
    const PartGradients gradients = unit_stride_backward(grad, blocks, of_blocks, 0, wants_any, wants_weight);
    if (wants_any) {
      const at::Tensor whole = from_blocks(gradients.x.contiguous(kBlocksLast));
      of_x[0] = whole.narrow(1, 0, parts[0].size(1));
      if (parts.size() == 2) of_x[1] = whole.narrow(1, parts[0].size(1), parts[1].size(1));
    }
    return wants_weight ? strided_weight_gradient(gradients.weight, weight) : at::Tensor();
  }

  // Works part by part, without joining the parts or splitting their gradient.
  template <typename Wants>
  static at::Tensor transposed_backward(const at::Tensor& grad, const std::vector<at::Tensor>& parts, const at::Tensor& weight,
                                        const at::Tensor& of_blocks, const Wants& wants_x, bool wants_weight,
                                        std::vector<at::Tensor>& of_x) {
    const at::Tensor blocks = to_blocks(grad);
    at::Tensor whole = wants_weight ? at::empty(weight.sizes(), weight.options()) : at::Tensor();
    int64_t first = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t in = parts[i].size(1);
      const at::Tensor own = parts.size() == 1 ? of_blocks : of_blocks.narrow(1, first, in).contiguous(kBlocksLast);
      const PartGradients gradients = unit_stride_backward(blocks, parts[i], own, 1, wants_x(i), wants_weight);
      of_x[i] = gradients.x;
      if (wants_weight) add_transposed_weight_gradient(gradients.weight, first, whole);
      first += in;
    }
    return whole;
  }
};

}  // namespace

at::Tensor to_blocks(const at::Tensor& x) {
  if (has_block_kernels(x)) return device_ops().blocks.to_blocks(x.contiguous(kBlocksLast));
  const int64_t boxes = x.size(0), channels = x.size(1);
  const int64_t m0 = x.size(2) / 2 + 1, m1 = x.size(3) / 2 + 1, m2 = x.size(4) / 2 + 1;
  const at::Tensor padded = at::constant_pad_nd(x, {1, 1, 1, 1, 1, 1});
  const at::Tensor split = padded.reshape({boxes, channels, m0, 2, m1, 2, m2, 2}).permute({0, 3, 5, 7, 1, 2, 4, 6});
  return split.reshape({boxes, kBlockPoints * channels, m0, m1, m2}).contiguous(kBlocksLast);
}

at::Tensor from_blocks(const at::Tensor& blocks, const at::Tensor& bias, double slope) {
  const at::Tensor packed = blocks.contiguous(kBlocksLast);
  const bool takes_bias = !bias.defined() || bias.scalar_type() == at::kFloat;
  if (has_block_kernels(blocks) && takes_bias) return device_ops().blocks.from_blocks(packed, bias, slope);
  const int64_t boxes = blocks.size(0), channels = blocks.size(1) / kBlockPoints;
  const int64_t m0 = blocks.size(2), m1 = blocks.size(3), m2 = blocks.size(4);
  const at::Tensor split = packed.view({boxes, 2, 2, 2, channels, m0, m1, m2}).permute({0, 4, 5, 1, 6, 2, 7, 3});
  at::Tensor box = split.reshape({boxes, channels, 2 * m0, 2 * m1, 2 * m2});
  for (int64_t axis = 2; axis < 5; ++axis) box = box.narrow(axis, 1, box.size(axis) - 2);
  box = box.contiguous(kBlocksLast);
  if (bias.defined()) finish(box, bias, slope);
  return box;
}

bool fits_blocks(at::TensorList x, const at::Tensor& weight, const ConvolutionCall& call) {
  if (x.front().dim() != 5 || weight.dim() != 5 || call.leaky_relu.slope < 0) return false;
  for (int axis = 0; axis < 3; ++axis) {
    const auto place = static_cast<size_t>(axis);
    if (weight.size(2 + axis) != kTaps || call.rule.stride.at(place) != 2 || call.rule.padding.at(place) != 1 ||
        call.rule.at_end().at(place) != 1) {
      return false;
    }
    if (call.kind == ConvolutionKind::Strided && x.front().size(2 + axis) % 2 != 0) return false;
  }
  return x.front().numel() > 0;
}

at::Tensor block_convolution(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call) {
  return BlockConvolution::apply(x.front(), x.size() == 2 ? std::optional(x.back()) : std::nullopt, weight, bias, call);
}

}  // namespace welkin::ops
