// SPDX-License-Identifier: Apache-2.0
#include "parallel/spatial/block_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>

#include "ops/base/once_differentiable.h"
#include "parallel/comm/collectives.h"

namespace welkin::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::array<int64_t, 2> kPoints{2, 3};  // dims of (B, C, H, W)

// (2, B, C, 1, 1): sums of x and x^2 over own points, in float64, since they are summed over members and then subtracted.
// Squares are taken around the own mean, since a field's mean may be a thousand deviations.
at::Tensor own_sums(const at::Tensor& x_BCHW) {
  const int64_t points = x_BCHW.size(2) * x_BCHW.size(3);
  if (points == 0) return at::zeros({2, x_BCHW.size(0), x_BCHW.size(1), 1, 1}, x_BCHW.options().dtype(at::kDouble));
  const auto [variance, mean] = at::var_mean(x_BCHW, kPoints, /*correction=*/0, /*keepdim=*/true);
  const at::Tensor own_mean = mean.to(at::kDouble);
  return at::stack({own_mean, variance.to(at::kDouble) + own_mean.square()}) * points;
}

struct NormOfBlocks : torch::autograd::Function<NormOfBlocks> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            const Group& group, int64_t num_points, double epsilon) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::Tensor sums = all_reduce(group, own_sums(x)) / num_points;
    const at::Tensor mean = sums[0], variance = (sums[1] - mean.square()).clamp_min(0);
    const at::Tensor factor = at::rsqrt(variance + epsilon).to(x.scalar_type()), shift = mean.to(x.scalar_type());
    context->save_for_backward({x, weight, shift, factor});
    context->saved_data["num_points"] = num_points;
    context->saved_data["group"] = c10::IValue::make_capsule(c10::make_intrusive<GroupHolder>(group));
    return at::addcmul(bias.view({1, -1, 1, 1}), x - shift, factor * weight.view({1, -1, 1, 1}));
  }

  // With y = (x - mean) / deviation and g = weight * gradient: (g - mean(g) - y mean(g y)) / deviation. It makes few passes
  // over whole blocks.
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    ops::once_differentiable("block norm");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &shift = saved[2], &factor = saved[3], &grad = grads[0];
    const Group& group = static_cast<GroupHolder&>(*context->saved_data["group"].toCapsule()).group;
    const at::Tensor centred = x - shift;
    const at::Tensor own =
        at::stack({grad.sum(kPoints, /*keepdim=*/true), (grad * centred).sum(kPoints, /*keepdim=*/true) * factor});
    const at::Tensor means = all_reduce(group, own) / context->saved_data["num_points"].toInt();
    const at::Tensor scale = factor * weight.view({1, -1, 1, 1});
    const at::Tensor by_x = at::addcmul(-means[0] * scale, centred, -means[1] * scale * factor).addcmul_(grad, scale);
    const at::Tensor of_channels = own.sum(at::IntArrayRef{1}).flatten(1);
    return {by_x, of_channels[1], of_channels[0], {}, {}, {}};
  }

  struct GroupHolder : torch::CustomClassHolder {
    explicit GroupHolder(Group kept) : group(std::move(kept)) {}
    Group group;
  };
};

}  // namespace

at::Tensor block_norm(const Group& group, int64_t num_points, const at::Tensor& x_BCHW, const at::Tensor& weight,
                      const at::Tensor& bias, double epsilon) {
  return NormOfBlocks::apply(x_BCHW, weight, bias, group, num_points, epsilon);
}

}  // namespace welkin::parallel
