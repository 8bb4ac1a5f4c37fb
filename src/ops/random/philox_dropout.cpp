// SPDX-License-Identifier: Apache-2.0
// Registration, gradient and drop-path. The mask is linear and diagonal, so the gradient is the same operator.
#include "ops/random/philox_dropout.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "core/error.h"
#include "ops/arithmetic/philox_dropout_kernel.h"

namespace welkin::ops {
namespace {

using Lengths = at::IntArrayRef;

at::Tensor dropout_reference(const at::Tensor& x, const at::Tensor& step, const at::Tensor& sample, int64_t stream, double rate,
                             Lengths global_shape, Lengths offset) {
  const MaskKey key{static_cast<uint64_t>(stream), step, sample};
  const at::Tensor keep = philox_keep_reference(x.sizes(), rate, key, {global_shape.vec(), offset.vec()});
  return x.mul(keep.to(x.scalar_type())).mul(1.0 / (1.0 - rate));
}

at::Tensor call_dropout(const at::Tensor& x, double rate, const MaskKey& key, const MaskWindow& window) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("welkin::philox_dropout", "")
          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t, double, Lengths, Lengths)>();
  return op.call(x, key.step, key.sample, static_cast<int64_t>(key.stream), rate, window.global_shape, window.offset);
}

struct PhiloxDropout : torch::autograd::Function<PhiloxDropout> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, double rate, const MaskKey& key,
                            const MaskWindow& window) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({key.step, key.sample});
    context->saved_data["stream"] = static_cast<int64_t>(key.stream);
    context->saved_data["rate"] = rate;
    context->saved_data["global_shape"] = window.global_shape;
    context->saved_data["offset"] = window.offset;
    return call_dropout(x, rate, key, window);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const MaskKey key{static_cast<uint64_t>(context->saved_data["stream"].toInt()), saved[0], saved[1]};
    const MaskWindow window{context->saved_data["global_shape"].toIntVector(), context->saved_data["offset"].toIntVector()};
    return {philox_dropout(grads[0], context->saved_data["rate"].toDouble(), key, window), {}, {}, {}};
  }
};

void check_key(const at::Tensor& x, double rate, const MaskKey& key) {
  WELKIN_CHECK(rate >= 0.0 && rate < 1.0, "a dropout rate lies in [0, 1)");
  WELKIN_CHECK(key.step.defined() && key.sample.defined(), "dropout in training needs the step and the sample numbers");
  WELKIN_CHECK(key.step.scalar_type() == at::kLong && key.step.numel() == 1, "the step is one int64");
  WELKIN_CHECK(key.sample.scalar_type() == at::kLong && x.dim() >= 1 && key.sample.numel() == x.size(0),
               "one int64 sample number per element of dim 0");
}

}  // namespace

at::Tensor philox_dropout(const at::Tensor& x, double rate, const MaskKey& key, const MaskWindow& window) {
  if (rate == 0.0) return x;
  check_key(x, rate, key);
  if (window.local_shape.empty()) return PhiloxDropout::apply(x, rate, key, window);
  std::vector<int64_t> sizes{x.size(0)};
  sizes.insert(sizes.end(), window.local_shape.begin(), window.local_shape.end());
  return PhiloxDropout::apply(x.reshape(sizes), rate, key, MaskWindow{window.global_shape, window.offset}).reshape(x.sizes());
}

at::Tensor philox_drop_path(const at::Tensor& x, double rate, const MaskKey& key) {
  if (rate == 0.0) return x;
  check_key(x, rate, key);
  std::vector<int64_t> one_per_sample(static_cast<size_t>(x.dim()), 1);
  one_per_sample[0] = x.size(0);
  return x.mul(call_dropout(x.new_ones(one_per_sample), rate, key, {}));
}

}  // namespace welkin::ops

// NOLINTBEGIN: torch's registration macros
TORCH_LIBRARY(welkin, library) {
  library.def(
      "philox_dropout(Tensor x, Tensor step, Tensor sample, int stream, float rate, int[] global_shape, int[] offset) -> Tensor");
}
TORCH_LIBRARY_IMPL(welkin, CompositeExplicitAutograd, library) { library.impl("philox_dropout", welkin::ops::dropout_reference); }
TORCH_LIBRARY_IMPL(welkin, CPU, library) { library.impl("philox_dropout", welkin::ops::philox_dropout_cpu); }
// NOLINTEND
