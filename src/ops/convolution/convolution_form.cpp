// SPDX-License-Identifier: Apache-2.0
// Both convolutions are the same operation, seen from either grid: the fine one has the input of a convolution and the result
// of its transpose. Weights lie in memory as (taps, in, out); weights stored like that are not copied. If the fine grid
// has few channels, ops/convolution/convolution_narrow.h does the work.
#include "ops/convolution/convolution_form.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_cpu.h"
#include "ops/convolution/convolution_narrow.h"
#include "ops/cpu/convolution/convolution_kernel.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::ops {
namespace {

at::Tensor channels_last(const at::Tensor& x) { return x.contiguous(at::MemoryFormat::ChannelsLast3d); }

// (kD, kH, kW, in, out)
at::Tensor by_taps(const at::Tensor& weight, ConvolutionKind kind) {
  return (kind == ConvolutionKind::Strided ? weight.permute({2, 3, 4, 1, 0}) : weight.permute({2, 3, 4, 0, 1})).contiguous();
}
at::Tensor from_taps(const at::Tensor& taps, ConvolutionKind kind) {
  return kind == ConvolutionKind::Strided ? taps.permute({4, 3, 0, 1, 2}) : taps.permute({3, 4, 0, 1, 2});
}

BoxShape box_of(const at::Tensor& x) { return {x.size(2), x.size(3), x.size(4)}; }

// True if a fine box of so many channels is read by columns, and written plane by plane.
bool is_narrow(int64_t channels) { return channels % kChannelMultiple != 0; }

// Pads a matrix with zero rows and columns.
at::Tensor padded_matrix(const at::Tensor& matrix, int64_t rows, int64_t columns) {
  if (matrix.size(-2) == rows && matrix.size(-1) == columns) return matrix.contiguous();
  std::vector<int64_t> shape = matrix.sizes().vec();
  shape[shape.size() - 2] = rows;
  shape.back() = columns;
  at::Tensor padded = at::zeros(shape, matrix.options());
  padded.narrow(-2, 0, matrix.size(-2)).narrow(-1, 0, matrix.size(-1)).copy_(matrix);
  return padded;
}

const float* floats(const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; }

template <typename T>
constexpr at::ScalarType kTypeOf = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;

// One call. Its input has type T, in which matmuls are made; results, their gradients and the input's gradient have type
// S.
template <typename T, typename S = T>
class BoxForm {
 public:
  BoxForm(const ConvolutionCall& call, const ConvolutionOperands& operands)
      : call_(call), operands_(operands), taps_(by_taps(operands.weight, call.kind)), convolution_(geometry()) {}

  at::Tensor forward(const at::Tensor& bias) const {
    const at::Tensor dense_bias = bias.defined() ? bias.contiguous() : bias;
    const Epilogue end{floats(dense_bias), static_cast<float>(call_.leaky_relu.slope)};
    if (!is_narrow(fine_channels())) return wide_result(end);
    return down() ? narrow_down(end) : narrow_up(end);
  }

  ConvolutionGradients backward(const at::Tensor& out, const at::Tensor& grad_out, const GradientMask& wanted) const {
    ConvolutionGradients gradients;
    const at::Tensor grad = gated(out, grad_out, wanted.bias ? &gradients.bias : nullptr);
    if (is_narrow(fine_channels())) {
      down() ? narrow_down_backward(grad, wanted, gradients) : narrow_up_backward(grad, wanted, gradients);
    } else {
      wide_backward(grad, wanted, gradients);
    }
    return gradients;
  }

 private:
  bool down() const { return call_.kind == ConvolutionKind::Strided; }
  int64_t in() const { return taps_.size(3); }
  int64_t out() const { return taps_.size(4); }
  int64_t fine_channels() const { return down() ? in() : out(); }
  int64_t num_taps() const { return convolution_.num_taps(); }
  const at::Tensor& x() const { return operands_.x.front(); }

  ConvolutionGeometry geometry() const {
    const ConvolutionParams& rule = call_.rule;
    ConvolutionGeometry c{
        .batch = x().size(0), .kernel = box_of(operands_.weight), .stride = rule.stride, .padding = rule.padding};
    (down() ? c.fine : c.coarse) = box_of(x());
    for (size_t a = 0; a < kBoxAxes; ++a) {
      const int64_t reach = c.kernel[a] - c.padding[a] - rule.at_end()[a];
      if (down()) {
        c.coarse[a] = (c.fine[a] - reach) / c.stride[a] + 1;
        WELKIN_CHECK(c.fine[a] >= reach, "the kernel fits into the box");
      } else {
        c.fine[a] = (c.coarse[a] - 1) * c.stride[a] + reach;
      }
      WELKIN_CHECK(c.coarse[a] >= 1 && c.fine[a] >= 1, "the kernel fits into the box");
    }
    return c;
  }

  const BoxShape& out_box() const { return down() ? convolution_.coarse : convolution_.fine; }

  at::Tensor empty_box(int64_t channels, const BoxShape& box, at::MemoryFormat format, at::ScalarType type = kTypeOf<S>) const {
    return at::empty({convolution_.batch, channels, box[0], box[1], box[2]}, x().options().dtype(type).memory_format(format));
  }
  at::Tensor last_box(int64_t channels, const BoxShape& box) const {
    return empty_box(channels, box, at::MemoryFormat::ChannelsLast3d);
  }
  at::Tensor empty_taps() const { return at::empty(taps_.sizes(), taps_.options()); }

  at::Tensor result_box(at::MemoryFormat format) const {
    if (!call_.into.defined()) return empty_box(out(), out_box(), format);
    const int64_t dense = format == at::MemoryFormat::ChannelsLast3d ? 1 : 4;  // the dim whose neighbours must be neighbours
    WELKIN_CHECK(call_.into.size(0) == convolution_.batch && call_.into.size(1) == out() && box_of(call_.into) == out_box() &&
                     call_.into.stride(dense) == 1 && call_.into.scalar_type() == kTypeOf<S>,
                 "a result is written into memory of its shape and type");
    return call_.into;
  }

  static S* data(const at::Tensor& tensor) { return static_cast<S*>(tensor.mutable_data_ptr()); }
  static const S* values(const at::Tensor& tensor) { return static_cast<const S*>(tensor.const_data_ptr()); }
  static ResultLines<S> lines(const at::Tensor& box) {
    return {data(box),
            box.size(1),
            box_of(box),
            {box.stride(0), box.stride(2), box.stride(3)},
            box.is_contiguous(at::MemoryFormat::ChannelsLast3d)};
  }
  static BoxView<T> view(const at::Tensor& last) { return {static_cast<const T*>(last.const_data_ptr()), last.size(1)}; }
  static PaddedBox<T> padded_box(const ConvolutionGeometry& convolution, const at::Tensor& fine) {
    NarrowBox<T> box{static_cast<const T*>(fine.const_data_ptr()), fine.size(1), {}};
    std::copy_n(fine.strides().begin(), box.strides.size(), box.strides.begin());
    return PaddedBox<T>(convolution, box);
  }

  // Calls body(part, its first channel) for x's parts.
  template <typename Body>
  void for_parts(Body&& body) const {
    int64_t first = 0;
    for (const at::Tensor& part : operands_.x) {
      body(part, first);
      first += part.size(1);
    }
  }

  at::Tensor wide_result(const Epilogue& end) const {
    std::vector<ConvolutionPart<T>> parts;
    for_parts([&](const at::Tensor& part, int64_t first) {
      parts.push_back({view(part), {floats(taps_) + first * out(), in() * out(), out(), 1}});
    });
    at::Tensor result = result_box(at::MemoryFormat::ChannelsLast3d);
    tap_matmuls(convolution_, down() ? Grid::Coarse : Grid::Fine, parts, end, lines(result));
    return result;
  }

  void wide_backward(const at::Tensor& grad, const GradientMask& wanted, ConvolutionGradients& gradients) const {
    const at::Tensor grad_taps = wanted.weight ? empty_taps() : at::Tensor();
    const Grid in_grid = down() ? Grid::Fine : Grid::Coarse;
    for_parts([&](const at::Tensor& part, int64_t first) {
      if (wanted.x) {
        gradients.x.push_back(last_box(part.size(1), box_of(part)));
        const std::vector<ConvolutionPart<T>> parts{{view(grad), {floats(taps_) + first * out(), in() * out(), 1, out()}}};
        tap_matmuls(convolution_, in_grid, parts, {}, lines(gradients.x.back()));
      }
      if (wanted.weight) {
        sum_tap_outers<T>(convolution_, in_grid, view(part), view(grad),
                          {grad_taps.mutable_data_ptr<float>() + first * out(), in() * out(), out()});
      }
    });
    if (wanted.weight) gradients.weight = from_taps(grad_taps, call_.kind);
  }

  // (taps, fine, coarse): the matrix for columns.
  at::Tensor column_weights(int64_t depth) const {
    const at::Tensor by_role = down() ? taps_ : taps_.transpose(3, 4);
    return padded_matrix(by_role.reshape({-1, by_role.size(4)}), depth, by_role.size(4));
  }

  // (k0, coarse, taps of a plane and fine channels).
  at::Tensor scatter_weights() const {
    const at::Tensor by_role = down() ? taps_.permute({0, 4, 1, 2, 3}) : taps_.permute({0, 3, 1, 2, 4});
    return padded_matrix(by_role.reshape({by_role.size(0), by_role.size(1), -1}), by_role.size(1),
                         scatter_width(convolution_, fine_channels()));
  }

  at::Tensor scattered(at::TensorList coarse, const Epilogue& end, at::Tensor result) const {
    const at::Tensor weights = scatter_weights();
    std::vector<ScatterPart<T>> parts;
    int64_t first = 0;
    for (const at::Tensor& part : coarse) {
      parts.push_back({view(part), floats(weights) + first * weights.size(2), weights.stride(0)});
      first += part.size(1);
    }
    narrow_results(convolution_, parts, end, fine_channels(),
                   ResultPlanes<S>{data(result), {result.stride(0), result.stride(1), result.stride(2), result.stride(3)}});
    return result;
  }

  at::Tensor narrow_down(const Epilogue& end) const {
    const PaddedBox<T> fine = padded_box(convolution_, x());
    const at::Tensor weights = column_weights(fine.depth());
    at::Tensor result = result_box(at::MemoryFormat::ChannelsLast3d);
    narrow_matmuls(convolution_, fine, floats(weights), weights.stride(0), end, lines(result));
    return result;
  }

  at::Tensor narrow_up(const Epilogue& end) const {
    return scattered(operands_.x, end, result_box(at::MemoryFormat::Contiguous));
  }

  void narrow_down_backward(const at::Tensor& grad, const GradientMask& wanted, ConvolutionGradients& gradients) const {
    if (wanted.x) {
      gradients.x.push_back(scattered(grad, {}, empty_box(fine_channels(), convolution_.fine, at::MemoryFormat::Contiguous)));
    }
    if (!wanted.weight) return;
    const PaddedBox<T> fine = padded_box(convolution_, x());
    const at::Tensor sums = at::empty({fine.depth(), out()}, taps_.options());
    narrow_outers<T>(convolution_, fine, view(grad), sums.mutable_data_ptr<float>(), out());
    gradients.weight = from_taps(sums.narrow(0, 0, num_taps() * in()).view(taps_.sizes()), call_.kind);
  }

  void narrow_up_backward(const at::Tensor& grad, const GradientMask& wanted, ConvolutionGradients& gradients) const {
    if (!wanted.x && !wanted.weight) return;
    const PaddedBox<T> fine = padded_box(convolution_, grad);
    const at::Tensor weights = column_weights(fine.depth());
    const at::Tensor sums = at::empty({fine.depth(), in()}, taps_.options());
    for_parts([&](const at::Tensor& part, int64_t first) {
      if (wanted.x) {
        gradients.x.push_back(last_box(part.size(1), box_of(part)));
        narrow_matmuls(convolution_, fine, floats(weights) + first, weights.stride(0), {}, lines(gradients.x.back()));
      }
      if (wanted.weight) narrow_outers<T>(convolution_, fine, view(part), sums.mutable_data_ptr<float>() + first, in());
    });
    if (!wanted.weight) return;
    const BoxShape& kernel = convolution_.kernel;
    const at::Tensor by_role = sums.narrow(0, 0, num_taps() * out()).view({kernel[0], kernel[1], kernel[2], out(), in()});
    gradients.weight = from_taps(by_role.transpose(3, 4).contiguous(), call_.kind);
  }

  // Zero for a ReLU, even if the gradient is infinite.
  at::Tensor leaky_relu_below(const at::Tensor& grad) const {
    return call_.leaky_relu.slope == 0.0 ? at::zeros({}, grad.options()) : grad.mul(call_.leaky_relu.slope);
  }

  // The gradient before the activation, as operand of matmuls, and its sum over voxels.
  at::Tensor gated(const at::Tensor& result, const at::Tensor& grad, at::Tensor* bias) const {
    const bool wide = down() || !is_narrow(out());
    if (call_.leaky_relu.slope != 1.0 && wide) {
      const at::Tensor last = channels_last(grad), own = channels_last(result);
      at::Tensor gated = empty_box(out(), out_box(), at::MemoryFormat::ChannelsLast3d, kTypeOf<T>);
      const at::Tensor sums = at::empty({out()}, taps_.options());
      gate_gradient(values(last), values(own), static_cast<float>(call_.leaky_relu.slope), last.numel() / out(), out(),
                    static_cast<T*>(gated.mutable_data_ptr()), sums.mutable_data_ptr<float>());
      if (bias != nullptr) *bias = sums;
      return gated;
    }
    const at::Tensor passed = call_.leaky_relu.slope == 1.0 ? grad : at::where(result.gt(0), grad, leaky_relu_below(grad));
    if (bias != nullptr) *bias = passed.sum({0, 2, 3, 4}, /*keepdim=*/false, at::kFloat);
    return (wide ? channels_last(passed) : passed).to(kTypeOf<T>);
  }

  const ConvolutionCall& call_;
  const ConvolutionOperands& operands_;
  at::Tensor taps_;
  ConvolutionGeometry convolution_;
};

// True if parts end within a vector: the columns of one box are read once, and its rows fill the vectors better.
bool joins_parts(const std::vector<at::Tensor>& x) {
  return x.size() > 1 && std::ranges::any_of(x, [](const at::Tensor& part) { return is_narrow(part.size(1)); });
}

// Operands that the kernels can read in place: coarse boxes and wide ones channels-last.
ConvolutionOperands laid_out(const ConvolutionCall& call, const ConvolutionOperands& operands) {
  if (joins_parts(operands.x)) return {{channels_last(join_channels(operands.x))}, operands.weight};
  ConvolutionOperands ready{{}, operands.weight};
  for (const at::Tensor& part : operands.x) {
    ready.x.push_back(call.kind == ConvolutionKind::Strided && is_narrow(part.size(1)) ? part : channels_last(part));
  }
  return ready;
}

// True if the current set has matmuls of the type; every set has float32's.
bool has_kernel(at::ScalarType type) { return type == at::kBFloat16 && convolution_kernel<Bf16>(instruction_set()) != nullptr; }

// True if matmuls of the type are made in float32. That holds for bfloat16 unless the set has faster kernels for it.
// Memory stays bfloat16, so this is no slower than float32, unlike aten's convolutions of bfloat16.
bool is_widened(at::ScalarType type) {
  return type != at::kFloat && (upcasts_matmul(at::kCPU, type) || (type == at::kBFloat16 && !has_kernel(type)));
}

// Channels of a coarse box, whose matmuls are made in its type or in float32, are a multiple of this.
int64_t coarse_multiple(at::ScalarType type) {
  return type == at::kFloat || is_widened(type) ? kFloatMultiple : kChannelMultiple;
}

// The operands for float32 kernels, if matmuls of their type are widened. Weights are rounded to the type; the widened
// kernels of bfloat16 do that themselves.
ConvolutionOperands widened(const ConvolutionOperands& operands) {
  const at::ScalarType type = operands.x.front().scalar_type();
  ConvolutionOperands wide{{}, type == at::kBFloat16 ? operands.weight : operands.weight.to(type).to(at::kFloat)};
  for (const at::Tensor& part : operands.x) wide.x.push_back(part.to(at::kFloat));
  return wide;
}

// Checks five dims each: the parts' boxes, channels that fit the weight, and one bias per output channel.
bool shapes_fit(at::TensorList x, const at::Tensor& weight, ConvolutionKind kind, const at::Tensor& bias) {
  const bool down = kind == ConvolutionKind::Strided;
  int64_t channels = 0;
  for (const at::Tensor& part : x) {
    if (part.size(0) != x.front().size(0) || box_of(part) != box_of(x.front())) return false;
    channels += part.size(1);
  }
  const bool bias_fits = !bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(down ? 0 : 1));
  return bias_fits && channels == weight.size(down ? 1 : 0);
}

}  // namespace

bool convolution_cpu_supports(at::TensorList x, const at::Tensor& weight, ConvolutionKind kind, const at::Tensor& bias) {
  const at::ScalarType type = x.front().scalar_type();
  const bool known = type == at::kFloat || has_kernel(type) || is_widened(type);
  if (!known || weight.dim() != 5 || weight.scalar_type() != at::kFloat) return false;
  const bool down = kind == ConvolutionKind::Strided;
  const auto is_coarse = [&](int64_t channels) { return channels % coarse_multiple(type) == 0; };
  if (down && !is_coarse(weight.size(0))) return false;
  for (const at::Tensor& part : x) {
    if (!part.device().is_cpu() || part.dim() != 5 || part.scalar_type() != type || part.numel() == 0) return false;
    if (!down && !is_coarse(part.size(1))) return false;
  }
  return shapes_fit(x, weight, kind, bias);
}

at::Tensor convolution_cpu_memory(const ConvolutionCall& call, const at::Tensor& x, const at::Tensor& weight,
                                  const BoxShape& cells) {
  const bool down = call.kind == ConvolutionKind::Strided;
  const int64_t out = weight.size(down ? 0 : 1);
  return at::empty({x.size(0), out, cells[0], cells[1], cells[2]},
                   x.options().requires_grad(false).memory_format(down || !is_narrow(out) ? at::MemoryFormat::ChannelsLast3d
                                                                                          : at::MemoryFormat::Contiguous));
}

at::Tensor convolution_cpu_forward(const ConvolutionCall& call, const ConvolutionOperands& operands, const at::Tensor& bias) {
  const ConvolutionOperands ready = laid_out(call, operands);
  const at::ScalarType type = ready.x.front().scalar_type();
  if (type == at::kFloat) return BoxForm<float>(call, ready).forward(bias);
  if (!is_widened(type)) return BoxForm<Bf16>(call, ready).forward(bias);
  const ConvolutionOperands wide = widened(ready);
  if (type == at::kBFloat16) return BoxForm<float, Bf16>(call, wide).forward(bias);
  ConvolutionCall as_float = call;
  as_float.into.reset();
  const at::Tensor result = BoxForm<float>(as_float, wide).forward(bias);
  return call.into.defined() ? call.into.copy_(result) : result.to(type);
}

namespace {

ConvolutionGradients gradients_of(const ConvolutionCall& call, const ConvolutionOperands& ready, const at::Tensor& out,
                                  const at::Tensor& grad, const GradientMask& wanted) {
  const at::ScalarType type = ready.x.front().scalar_type();
  if (type == at::kFloat) return BoxForm<float>(call, ready).backward(out, grad, wanted);
  if (!is_widened(type)) return BoxForm<Bf16>(call, ready).backward(out, grad, wanted);
  const ConvolutionOperands wide = widened(ready);
  if (type == at::kBFloat16) return BoxForm<float, Bf16>(call, wide).backward(out, grad, wanted);
  const at::Tensor wide_out = out.defined() ? out.to(at::kFloat) : out;
  ConvolutionGradients gradients = BoxForm<float>(call, wide).backward(wide_out, grad.to(at::kFloat), wanted);
  for (at::Tensor& grad_x : gradients.x) grad_x = grad_x.defined() ? grad_x.to(type) : grad_x;
  return gradients;
}

}  // namespace

ConvolutionGradients convolution_cpu_backward(const ConvolutionCall& call, const ConvolutionOperands& operands,
                                              const at::Tensor& out, const at::Tensor& grad, const GradientMask& wanted) {
  ConvolutionGradients gradients = gradients_of(call, laid_out(call, operands), out, grad, wanted);
  if (wanted.x && joins_parts(operands.x)) {
    std::vector<int64_t> channels;
    for (const at::Tensor& part : operands.x) channels.push_back(part.size(1));
    gradients.x = gradients.x.front().split_with_sizes(channels, 1);
  }
  return gradients;
}

}  // namespace welkin::ops
