// SPDX-License-Identifier: Apache-2.0
// Both convolutions are one thing seen from either grid: the fine one has the input of a convolution and the result of its
// transpose. Memory of weights is (taps, in, out), to which a weight that is stored so need not be copied.
#include "ops/convolution.h"

#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose3d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "core/text.h"
#include "ops/autocast.h"
#include "ops/convolution_cpu.h"
#include "ops/cpu/convolution_kernel.h"

namespace welkin::ops {
namespace {

enum class Way { Down, Up };  // from the fine grid to the coarse one, or back

at::Tensor channels_last(const at::Tensor& x) { return x.contiguous(at::MemoryFormat::ChannelsLast3d); }

// (kD, kH, kW, in, out)
at::Tensor by_taps(const at::Tensor& weight, Way way) {
  return (way == Way::Down ? weight.permute({2, 3, 4, 1, 0}) : weight.permute({2, 3, 4, 0, 1})).contiguous();
}
at::Tensor from_taps(const at::Tensor& taps, Way way) {
  return way == Way::Down ? taps.permute({4, 3, 0, 1, 2}) : taps.permute({3, 4, 0, 1, 2});
}

BoxShape box_of(const at::Tensor& x) { return {x.size(2), x.size(3), x.size(4)}; }

BoxConvolution geometry(const at::Tensor& x, const at::Tensor& weight, const BoxStride& rule, Way way) {
  BoxConvolution convolution{.batch = x.size(0), .kernel = box_of(weight), .stride = rule.stride, .padding = rule.padding};
  (way == Way::Down ? convolution.fine : convolution.coarse) = box_of(x);
  for (size_t a = 0; a < kBoxAxes; ++a) {
    const int64_t reach = convolution.kernel[a] - 2 * convolution.padding[a];
    if (way == Way::Down) {
      convolution.coarse[a] = (convolution.fine[a] - reach) / convolution.stride[a] + 1;
    } else {
      convolution.fine[a] = (convolution.coarse[a] - 1) * convolution.stride[a] + reach;
    }
    WELKIN_CHECK(convolution.fine[a] >= reach && convolution.coarse[a] >= 1 && convolution.fine[a] >= 1,
                 "the kernel fits into the box");
  }
  return convolution;
}

at::Tensor empty_box(int64_t batch, int64_t channels, const BoxShape& box, const at::Tensor& like) {
  return at::empty({batch, channels, box[0], box[1], box[2]}, like.options().memory_format(at::MemoryFormat::ChannelsLast3d));
}

const float* data_of(const at::Tensor& x) { return x.const_data_ptr<float>(); }

struct BoxProduct : torch::autograd::Function<BoxProduct> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x_in, const at::Tensor& weight,
                            const at::Tensor& bias, const BoxStride& rule, Way way) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::Tensor x = channels_last(x_in);
    const at::Tensor taps = by_taps(weight, way);
    const BoxConvolution convolution = geometry(x, weight, rule, way);
    const Grid of = way == Way::Down ? Grid::Coarse : Grid::Fine;
    at::Tensor out = empty_box(x.size(0), taps.size(4), way == Way::Down ? convolution.coarse : convolution.fine, x);
    out.copy_(bias.view({1, -1, 1, 1, 1}).expand_as(out));
    add_tap_products(convolution, of, {data_of(x), x.size(1)}, {data_of(taps), taps.size(3), taps.size(4)},
                     out.mutable_data_ptr<float>());
    context->save_for_backward({x, weight});
    context->saved_data["way"] = way == Way::Up;
    context->saved_data["stride"] = std::vector<int64_t>(rule.stride.begin(), rule.stride.end());
    context->saved_data["padding"] = std::vector<int64_t>(rule.padding.begin(), rule.padding.end());
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const Way way = context->saved_data["way"].toBool() ? Way::Up : Way::Down;
    BoxStride rule;
    const auto stride = context->saved_data["stride"].toIntVector();
    const auto padding = context->saved_data["padding"].toIntVector();
    std::copy_n(stride.begin(), kBoxAxes, rule.stride.begin());
    std::copy_n(padding.begin(), kBoxAxes, rule.padding.begin());
    const BoxConvolution convolution = geometry(x, weight, rule, way);
    const at::Tensor grad = channels_last(grads[0]);
    const Grid in_grid = way == Way::Down ? Grid::Fine : Grid::Coarse;
    at::Tensor grad_x;
    at::Tensor grad_weight;
    at::Tensor grad_bias;
    if (context->needs_input_grad(0)) {
      const at::Tensor taps = by_taps(weight, way);
      grad_x = empty_box(x.size(0), x.size(1), box_of(x), x).zero_();
      add_tap_products(convolution, in_grid, {data_of(grad), grad.size(1)}, {data_of(taps), taps.size(4), taps.size(3), true},
                       grad_x.mutable_data_ptr<float>());
    }
    if (context->needs_input_grad(1)) {
      const at::Tensor taps = at::empty({weight.size(2), weight.size(3), weight.size(4), x.size(1), grad.size(1)}, x.options());
      sum_tap_outers(convolution, in_grid, {data_of(x), x.size(1)}, {data_of(grad), grad.size(1)},
                     taps.mutable_data_ptr<float>());
      grad_weight = from_taps(taps, way);
    }
    if (context->needs_input_grad(2)) grad_bias = grad.sum({0, 2, 3, 4});
    return {grad_x, grad_weight, grad_bias, {}, {}};
  }
};

at::Tensor box_product(const at::Tensor& x_in, const at::Tensor& weight_in, const at::Tensor& bias, const BoxStride& rule,
                       Way way) {
  const at::Tensor x = cast_operand(x_in, OperatorClass::Product);
  const at::Tensor weight = cast_operand(weight_in, OperatorClass::Product);
  const int64_t in_dim = way == Way::Down ? 1 : 0;
  if (convolution_cpu_takes(x, weight, weight.size(in_dim), weight.size(1 - in_dim))) {
    return BoxProduct::apply(x, weight, bias, rule, way);
  }
  return way == Way::Down ? convolution3d_reference(x_in, weight_in, bias, rule)
                          : transposed_convolution3d_reference(x_in, weight_in, bias, rule);
}

}  // namespace

std::string convolution_form(c10::Device device, at::ScalarType dtype) {
  if (!device.is_cpu()) return "aten";
  const at::Tensor box = at::zeros({1, 1, 1, 1, 1}, dtype);
  return convolution_cpu_takes(box, box, kChannelMultiple, kChannelMultiple) ? cat("welkin for multiples of ", kChannelMultiple)
                                                                             : "aten";
}

at::Tensor convolution3d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const BoxStride& rule) {
  return box_product(x, weight, bias, rule, Way::Down);
}

at::Tensor convolution3d_reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const BoxStride& rule) {
  return at::conv3d(x, weight, bias, rule.stride, rule.padding);
}

at::Tensor transposed_convolution3d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                    const BoxStride& rule) {
  return box_product(x, weight, bias, rule, Way::Up);
}

at::Tensor transposed_convolution3d_reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                              const BoxStride& rule) {
  return at::conv_transpose3d(x, weight, bias, rule.stride, rule.padding);
}

}  // namespace welkin::ops
