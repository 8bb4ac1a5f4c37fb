// SPDX-License-Identifier: Apache-2.0
// Measures which form of a convolution is faster on a GPU, as cuDNN does for its own.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "ops/convolution/block_convolution.h"

namespace welkin::ops {
namespace {

// Boxes of a measured convolution: at least eight, and as many as fit the limit of elements, to fill the device.
constexpr int64_t kLeastBoxes = 8, kMostElements = 1 << 25;

using ConvolutionKey = std::vector<int64_t>;

bool learns() { return at::GradMode::is_enabled(); }

int64_t measured_boxes(at::TensorList x) {
  int64_t elements = 0;
  for (const at::Tensor& part : x) elements += part.numel() / part.size(0);
  return std::min(x.front().size(0), std::max(kLeastBoxes, kMostElements / elements));
}

ConvolutionKey key_of(at::TensorList x, const at::Tensor& weight, const ConvolutionCall& call) {
  ConvolutionKey key{x.front().device().index(),
                     static_cast<int64_t>(x.front().scalar_type()),
                     measured_boxes(x),
                     call.kind == ConvolutionKind::Strided ? 0 : 1,
                     call.leaky_relu.slope == 1 ? 0 : 1,
                     learns() ? 1 : 0};
  for (const at::Tensor& part : x) {
    key.push_back(part.requires_grad() ? 1 : 0);
    for (int64_t dim = 1; dim < part.dim(); ++dim) key.push_back(part.size(dim));
  }
  for (const int64_t size : weight.sizes()) key.push_back(size);
  return key;
}

// A tensor like x in type, memory format and requires_grad.
at::Tensor operand_like(const at::Tensor& x, int64_t first_size) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.at(0) = first_size;
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  const at::Tensor waves = at::arange(count, x.options().dtype(at::kFloat)).mul(0.37).sin().view(sizes);
  return waves.to(x.options(), false, false, x.suggest_memory_format()).detach().requires_grad_(learns() && x.requires_grad());
}

double seconds_of_form(const ConvolutionForm& form, const std::vector<at::Tensor>& x, const at::Tensor& weight,
                       const at::Tensor& bias, const ConvolutionTimer& seconds_of) {
  std::vector<at::Tensor> wanted;
  for (const at::Tensor& operand : {x.front(), x.back(), weight, bias}) {
    const bool is_new = std::ranges::none_of(wanted, [&](const at::Tensor& other) { return other.is_same(operand); });
    if (operand.requires_grad() && is_new) wanted.push_back(operand);
  }
  at::Tensor grad;
  return seconds_of([&] {
    const at::Tensor out = form(x, weight, bias);
    if (wanted.empty()) return;
    if (!grad.defined()) grad = operand_like(out.detach(), out.size(0));
    torch::autograd::grad({out}, wanted, {grad});
  });
}

}  // namespace

bool blocks_are_faster(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call,
                       const ConvolutionForm& plain, const ConvolutionTimer& seconds_of) {
  static std::mutex mutex;
  static std::map<ConvolutionKey, bool> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(key_of(x, weight, call), false);
  if (!is_new) return found->second;
  try {
    std::vector<at::Tensor> operands;
    for (const at::Tensor& part : x) operands.push_back(operand_like(part, measured_boxes(x)));
    const at::Tensor own_weight = operand_like(weight, weight.size(0)), own_bias = operand_like(bias, bias.size(0));
    const auto blocks = [&](at::TensorList of, const at::Tensor& w, const at::Tensor& b) {
      return block_convolution(of, w, b, call);
    };
    const double plain_s = seconds_of_form(plain, operands, own_weight, own_bias, seconds_of);
    found->second = seconds_of_form(blocks, operands, own_weight, own_bias, seconds_of) < plain_s;
  } catch (const c10::Error&) {  // out of memory, or cuDNN has no algorithm: keep the plain form
  }
  return found->second;
}

}  // namespace welkin::ops
