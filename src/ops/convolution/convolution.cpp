// SPDX-License-Identifier: Apache-2.0
// Chooses the form, and has the gradient of our own.
#include "ops/convolution/convolution.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose3d.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "ops/base/autocast.h"
#include "ops/base/device_timer.h"
#include "ops/base/once_differentiable.h"
#include "ops/convolution/bias_leaky_relu.h"
#include "ops/convolution/block_convolution.h"
#include "ops/convolution/convolution_form.h"
#include "ops/cpu/convolution/convolution_kernel.h"
#include "ops/device/device_ops.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::ops {
namespace {

struct BoxConvolution : torch::autograd::Function<BoxConvolution> {
  // Without `second`, x has one part.
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& first,
                            const std::optional<at::Tensor>& second, const at::Tensor& weight, const at::Tensor& bias,
                            const ConvolutionCall& call) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    RECORD_FUNCTION("welkin::convolution", std::vector<c10::IValue>());
    const at::Tensor other = second.value_or(at::Tensor());
    at::Tensor out = convolution_cpu_forward(call, {parts_of(first, other), weight}, bias);
    if (call.into.defined()) out = at::alias(out);  // a tensor that is no view
    context->save_for_backward({first, other, weight, call.leaky_relu.slope == 1.0 ? at::Tensor() : out});
    context->saved_data["kind"] = call.kind == ConvolutionKind::Transposed;
    context->saved_data["slope"] = call.leaky_relu.slope;
    const auto keep = [&](const char* name, const BoxShape& of) {
      context->saved_data[name] = std::vector<int64_t>(of.begin(), of.end());
    };
    keep("stride", call.rule.stride), keep("padding", call.rule.padding), keep("padding_end", call.rule.at_end());
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    once_differentiable("convolution");
    RECORD_FUNCTION("welkin::convolution_backward", std::vector<c10::IValue>());
    const auto saved = context->get_saved_variables();
    ConvolutionCall call{.rule = {},
                         .leaky_relu = {context->saved_data["slope"].toDouble()},
                         .kind = context->saved_data["kind"].toBool() ? ConvolutionKind::Transposed : ConvolutionKind::Strided};
    const auto read = [&](const char* name, BoxShape& of) {
      const auto kept = context->saved_data[name].toIntVector();
      std::copy_n(kept.begin(), kBoxAxes, of.begin());
    };
    read("stride", call.rule.stride), read("padding", call.rule.padding), read("padding_end", call.rule.padding_end.emplace());
    const size_t two = saved[1].defined() ? 1 : 0;  // one more input
    const GradientMask wanted{.x = context->needs_input_grad(0) || (two == 1 && context->needs_input_grad(1)),
                              .weight = context->needs_input_grad(1 + two),
                              .bias = context->needs_input_grad(2 + two)};
    ConvolutionGradients gradients =
        convolution_cpu_backward(call, {parts_of(saved[0], saved[1]), saved[2]}, saved[3], grads[0], wanted);
    gradients.x.resize(2);
    return {gradients.x[0], gradients.x[1], gradients.weight, gradients.bias, at::Tensor()};
  }

  static std::vector<at::Tensor> parts_of(const at::Tensor& first, const at::Tensor& second) {
    return second.defined() ? std::vector<at::Tensor>{first, second} : std::vector<at::Tensor>{first};
  }
};

at::Tensor reference_convolution(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                 const ConvolutionCall& call) {
  return call.kind == ConvolutionKind::Strided ? convolution3d_reference(x, weight, bias, call.rule, call.leaky_relu)
                                               : transposed_convolution3d_reference(x, weight, bias, call.rule, call.leaky_relu);
}

// If there is a kernel for bias and leaky ReLU, the convolution omits them.
at::Tensor device_convolution(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call) {
  if (!fuses_bias_leaky_relu(x.front().device().type(), bias, call.leaky_relu.slope))
    return reference_convolution(x, weight, bias, call);
  const at::Tensor result = reference_convolution(x, weight, {}, {call.rule, {.slope = 1.0}, call.kind});
  if (bias_leaky_relu_supports(result, bias, call.leaky_relu.slope)) return bias_leaky_relu(result, bias, call.leaky_relu.slope);
  // Uses float32: the bias gradient is a sum over all points.
  return leaky_relu_in_place(result.add(bias.view({-1, 1, 1, 1})).to(result.scalar_type()), call.leaky_relu);
}

bool lies_last(const at::Tensor& x) { return x.is_contiguous(at::MemoryFormat::ChannelsLast3d); }

constexpr int kMeasuredCalls = 5;
constexpr int64_t kEight = 8, kLeastChannels = 4;  // channels that tensor cores take at once, and at least

// Pads the channels, dim `dim`, with zeros to a multiple of eight.
at::Tensor in_eights(const at::Tensor& x, int64_t dim) {
  const int64_t missing = (kEight - x.size(dim) % kEight) % kEight;
  if (missing == 0) return x;
  std::vector<int64_t> behind(static_cast<size_t>(2 * (x.dim() - dim)), 0);  // padding before and behind, from the last dim on
  behind.back() = missing;
  return at::constant_pad_nd(x, behind);
}

// The first channels of x. The gradient is padded in the same memory format; that of at::narrow would be channels-first.
struct FirstChannels : torch::autograd::Function<FirstChannels> {
  static at::Tensor forward(torch::autograd::AutogradContext* /*context*/, const at::Tensor& x, int64_t channels) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return x.narrow(1, 0, channels);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 const torch::autograd::variable_list& grads) {
    return {in_eights(grads[0], 1), at::Tensor()};
  }
};

at::Tensor convolution_in_eights(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                 const ConvolutionCall& call) {
  const int64_t out = bias.size(0);
  const at::Tensor whole = in_eights(in_eights(weight, 0), 1);
  const at::Tensor result = device_convolution({in_eights(join_channels(x), 1)}, whole, in_eights(bias, 0), call);
  return out == result.size(1) ? result : FirstChannels::apply(result, out);
}

// cuDNN computes in the memory order of one of the two.
bool wants_eights(at::TensorList x, const at::Tensor& weight) {
  const at::Tensor& first = x.front();
  const bool is_low = first.scalar_type() == at::kBFloat16 || first.scalar_type() == at::kHalf;
  const auto is_for_tensor_cores = [](const at::Tensor& y) {
    return y.suggest_memory_format() == at::MemoryFormat::ChannelsLast3d;
  };
  if (!first.is_cuda() || !is_low || !(is_for_tensor_cores(first) || is_for_tensor_cores(weight))) return false;
  return weight.size(0) % kLeastChannels != 0 || weight.size(1) % kLeastChannels != 0;
}

// Whether the whole kernel lies in the finer box at any of its positions along an axis.
bool reaches_inside(int64_t fine, int64_t coarse, int64_t kernel, int64_t stride, int64_t padding) {
  const int64_t first = (padding + stride - 1) / stride;
  return first < coarse && first * stride - padding + kernel <= fine;
}

// False where oneDNN of torch 2.11 makes the weight gradient in 16 bits: at a box that is so small along an axis that every
// position of the kernel reaches over an edge, it reads and writes beyond its memory (on processors with AVX512-BF16 and without
// AMX).
bool is_safe_in_low_type(at::TensorList x, const at::Tensor& weight, const ConvolutionCall& call) {
  const at::Tensor& first = x.front();
  const bool is_low = first.scalar_type() == at::kBFloat16 || first.scalar_type() == at::kHalf;
  if (!first.is_cpu() || !is_low || first.dim() != 5 || weight.dim() != 5) return true;
  for (size_t a = 0; a < kBoxAxes; ++a) {
    const auto dim = 2 + static_cast<int64_t>(a);
    const int64_t kernel = weight.size(dim), stride = call.rule.stride[a], given = first.size(dim);
    const int64_t before = call.rule.padding[a], both = before + call.rule.at_end()[a];
    const bool is_down = call.kind == ConvolutionKind::Strided;
    const int64_t fine = is_down ? given : (given - 1) * stride + kernel - both;
    const int64_t coarse = is_down ? (given + both - kernel) / stride + 1 : given;
    if (!reaches_inside(fine, coarse, kernel, stride, before)) return false;
  }
  return true;
}

// For a type that the processor does not multiply: computes in float32 and rounds once.
at::Tensor widened_reference(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call) {
  const AutocastGuard as_they_are(at::kCPU, std::nullopt);
  const at::ScalarType type = x.front().scalar_type();
  std::vector<at::Tensor> wide;
  for (const at::Tensor& part : x) wide.push_back(part.to(at::kFloat));
  const at::Tensor wide_bias = bias.defined() ? bias.to(at::kFloat) : bias;
  return reference_convolution(wide, weight.to(type).to(at::kFloat), wide_bias, call).to(type);
}

at::Tensor box_convolution_of_aten(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                   const ConvolutionCall& call) {
  if (wants_eights(x, weight)) return convolution_in_eights(x, weight, bias, call);
  // Aten needs operands of one type. Autocast ensures that if it is on; else weights are cast to the type of x, as in our form.
  const bool is_cast = at::autocast::is_autocast_enabled(x.front().device().type());
  const auto as_x = [&](const at::Tensor& own) { return is_cast || !own.defined() ? own : own.to(x.front().scalar_type()); };
  return device_convolution(x, as_x(weight), as_x(bias), call);
}

// Only if cuDNN may measure its forms; otherwise results must not depend on timings.
bool wants_blocks(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call) {
  const at::Tensor& first = x.front();
  const at::Context& torch = at::globalContext();
  if (!first.is_cuda() || device_ops().blocks.to_blocks == nullptr || !bias.defined() || !fits_blocks(x, weight, call))
    return false;
  if (!torch.benchmarkCuDNN() || torch.deterministicCuDNN() || torch.deterministicAlgorithms()) return false;
  const auto plain = [&](at::TensorList of, const at::Tensor& w, const at::Tensor& b) {
    return box_convolution_of_aten(of, w, b, call);
  };
  const auto seconds_of = [&](const std::function<void()>& work) {
    return seconds_on_device(first.device(), work, kMeasuredCalls);
  };
  return blocks_are_faster(x, weight, bias, call, plain, seconds_of);
}

// For a negative slope the result does not tell the sign of the input, so aten refuses the gradient.
bool is_own(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call) {
  return call.leaky_relu.slope >= 0 && convolution_cpu_supports(x, weight, call.kind, bias);
}

at::Tensor memory_for(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call,
                      const BoxShape& cells) {
  return is_own(x, weight, bias, call) ? convolution_cpu_memory(call, x.front(), weight, cells) : at::Tensor();
}

at::Tensor box_convolution(at::TensorList x_in, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call) {
  std::vector<at::Tensor> x;
  for (const at::Tensor& part : x_in) x.push_back(cast_operand(part, OperatorClass::Matmul));
  WELKIN_CHECK(x.size() == 1 || x.size() == 2, "a convolution takes one or two tensors");
  if (is_own(x, weight, bias, call)) {
    return BoxConvolution::apply(x.front(), x.size() == 2 ? std::optional(x.back()) : std::nullopt, weight, bias, call);
  }
  WELKIN_CHECK(!call.into.defined(), "only our own convolution writes into given memory");
  if (upcasts_matmul(x.front().device(), x.front().scalar_type()) || !is_safe_in_low_type(x, weight, call)) {
    return widened_reference(x, weight, bias, call);
  }
  if (wants_blocks(x, weight, bias, call)) return block_convolution(x, weight, bias, call);
  return box_convolution_of_aten(x, weight, bias, call);
}

}  // namespace

// Channels-last boxes are rows of channels. For rows torch's GPU kernel copies 16 bytes at once; for tensors with five dims it
// copies number by number.
at::Tensor join_channels(at::TensorList x) {
  if (x.size() == 1) return x.front();
  if (!std::ranges::all_of(x, lies_last)) return at::cat(x, 1);
  std::vector<at::Tensor> rows;
  for (const at::Tensor& part : x) rows.push_back(part.permute({0, 2, 3, 4, 1}).flatten(0, 3));
  const at::Tensor& box = x.front();
  return at::cat(rows, 1).view({box.size(0), box.size(2), box.size(3), box.size(4), -1}).permute({0, 4, 1, 2, 3});
}

at::Tensor leaky_relu_in_place(at::Tensor x, const LeakyRelu& leaky_relu) {
  if (leaky_relu.slope == 1.0) return x;
  return leaky_relu.slope == 0.0 ? at::relu_(x) : at::leaky_relu_(x, leaky_relu.slope);
}

// Uses the same rule as the choice itself.
std::string convolution_form(c10::Device device, at::ScalarType dtype) {
  if (!device.is_cpu()) return "aten";
  for (const int64_t channels : {kFloatMultiple, kChannelMultiple}) {
    const at::Tensor box = at::zeros({1, channels, 1, 1, 1}, dtype), weight = at::zeros({channels, channels, 1, 1, 1});
    if (convolution_cpu_supports(box, weight, ConvolutionKind::Strided)) return cat("welkin for multiples of ", channels);
  }
  return "aten";
}

at::Tensor convolution3d(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionParams& rule,
                         const LeakyRelu& leaky_relu, const at::Tensor& into) {
  return box_convolution(x, weight, bias, {rule, leaky_relu, ConvolutionKind::Strided, into});
}

at::Tensor convolution3d_reference(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                   const ConvolutionParams& rule, const LeakyRelu& leaky_relu) {
  at::Tensor joined = join_channels(x);
  BoxShape both = rule.padding;
  if (rule.at_end() != rule.padding) {  // aten pads both ends of an axis equally
    std::vector<int64_t> more;          // from the last axis on
    for (size_t a = kBoxAxes; a-- > 0;) {
      const int64_t before = rule.padding[a], behind = rule.at_end()[a];
      both[a] = std::min(before, behind);
      more.insert(more.end(), {before - both[a], behind - both[a]});
    }
    joined = at::constant_pad_nd(joined, more);
  }
  return leaky_relu_in_place(at::conv3d(joined, weight, bias, rule.stride, both), leaky_relu);
}

at::Tensor transposed_convolution3d(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                    const ConvolutionParams& rule, const LeakyRelu& leaky_relu, const at::Tensor& into) {
  return box_convolution(x, weight, bias, {rule, leaky_relu, ConvolutionKind::Transposed, into});
}

at::Tensor convolution3d_memory(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const BoxShape& cells,
                                const LeakyRelu& leaky_relu) {
  return memory_for(x, weight, bias, {{}, leaky_relu, ConvolutionKind::Strided, {}}, cells);
}

at::Tensor transposed_convolution3d_memory(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                           const BoxShape& cells, const LeakyRelu& leaky_relu) {
  return memory_for(x, weight, bias, {{}, leaky_relu, ConvolutionKind::Transposed, {}}, cells);
}

// Aten takes away the same from both ends of an axis; what is more is cut off. With a padding of kernel - 1, as for strips of
// spatial parallelism, oneDNN of torch 2.11 writes beyond the weight gradient's end. So on a CPU the padding is at most
// kernel - 2.
at::Tensor transposed_convolution3d_reference(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                              const ConvolutionParams& rule, const LeakyRelu& leaky_relu) {
  const at::Tensor joined = join_channels(x);
  const BoxShape& before = rule.padding;
  const BoxShape behind = rule.at_end();
  BoxShape both{}, added{};
  for (size_t a = 0; a < both.size(); ++a) {
    const int64_t most = joined.is_cpu() ? std::max<int64_t>(0, weight.size(2 + static_cast<int64_t>(a)) - 2) : before[a];
    both[a] = std::max<int64_t>(0, std::min({before[a], behind[a], most}));
    added[a] = std::max<int64_t>(0, -behind[a]);
  }
  at::Tensor made = at::conv_transpose3d(joined, weight, bias, rule.stride, both, added);
  if (both == before && both == behind) return leaky_relu_in_place(made, leaky_relu);
  for (size_t a = 0; a < both.size(); ++a) {
    const auto dim = 2 + static_cast<int64_t>(a);
    const int64_t first = before[a] - both[a], last = std::max<int64_t>(0, behind[a]) - both[a];
    made = made.narrow(dim, first, made.size(dim) - first - last);
  }
  return leaky_relu_in_place(made.contiguous(made.suggest_memory_format()), leaky_relu);
}

at::Tensor convolution3d_in_eights(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                   const ConvolutionParams& rule, const LeakyRelu& leaky_relu) {
  return convolution_in_eights(x, weight, bias, {rule, leaky_relu, ConvolutionKind::Strided});
}

at::Tensor transposed_convolution3d_in_eights(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                              const ConvolutionParams& rule, const LeakyRelu& leaky_relu) {
  return convolution_in_eights(x, weight, bias, {rule, leaky_relu, ConvolutionKind::Transposed});
}

}  // namespace welkin::ops
