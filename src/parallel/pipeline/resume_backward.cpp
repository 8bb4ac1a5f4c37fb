// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/resume_backward.h"

#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"

namespace welkin::parallel {
namespace {

struct ResumeBackward : torch::autograd::Function<ResumeBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::TensorList outputs,
                            const std::vector<at::Tensor>& gradients) {
    context->saved_data["gradients"] = gradients;
    return at::zeros({}, at::TensorOptions(at::kFloat).device(outputs[0].device()));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& /*grads*/) {
    torch::autograd::variable_list gradients = context->saved_data["gradients"].toTensorVector();
    context->saved_data.erase("gradients");
    gradients.emplace_back();  // for the gradients, which are not variables
    return gradients;
  }
};

}  // namespace

at::Tensor resume_backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients) {
  WELKIN_CHECK(!outputs.empty() && outputs.size() == gradients.size(), "every output has a gradient");
  return ResumeBackward::apply(at::TensorList(outputs), gradients);  // as a vector they would not be variables
}

}  // namespace welkin::parallel
