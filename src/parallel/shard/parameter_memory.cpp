// SPDX-License-Identifier: Apache-2.0
#include "parallel/shard/parameter_memory.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace welkin::parallel {
namespace {

class TellOfGradient : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit TellOfGradient(std::function<void()> tell) : tell_(std::move(tell)) {}
  void operator()(const at::Tensor& /*parameter*/) override { tell_(); }

 private:
  std::function<void()> tell_;
};

}  // namespace

bool owns_storage(const at::Tensor& parameter) {
  return parameter.storage_offset() == 0 && parameter.storage().nbytes() == parameter.nbytes();
}

void own_storage(at::Tensor& parameter) {
  if (!owns_storage(parameter)) parameter.set_data(parameter.clone(at::MemoryFormat::Preserve));
}

void on_gradient(const at::Tensor& parameter, std::function<void()> tell) {
  torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<TellOfGradient>(std::move(tell)));
}

}  // namespace welkin::parallel
