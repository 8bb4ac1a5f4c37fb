// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/differentiable.h"

#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "ops/base/once_differentiable.h"
#include "parallel/comm/widened.h"

namespace welkin::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor summed(const Group& group, const at::Tensor& x) { return all_reduce(group, widened(x)).to(x.scalar_type()); }

at::Tensor scattered(const Group& group, const at::Tensor& x, int64_t dim, const Lengths& lengths) {
  return reduce_scatter(group, widened(x), dim, lengths).to(x.scalar_type());
}

at::Tensor own_part(const Group& group, const at::Tensor& x, int64_t dim, const Lengths& lengths) {
  const auto place = static_cast<size_t>(group.group_rank());
  const int64_t offset = std::accumulate(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(place), int64_t{0});
  return x.narrow(dim, offset, lengths[place]).contiguous();
}

// A linear map and its transpose, both collectives.
struct LinearPair {
  std::function<at::Tensor(const at::Tensor&)> forward, backward;
};

struct LinearCollective : torch::autograd::Function<LinearCollective> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const std::shared_ptr<LinearPair>& pair) {
    context->saved_data["pair"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(pair));
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::Tensor out = pair->forward(x);
    return out.is_same(x) ? x.view_as(x) : out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    ops::once_differentiable("collective");
    const auto holder = context->saved_data["pair"].toCapsule();
    return {static_cast<Holder&>(*holder).pair->backward(grads[0]), {}};
  }

 private:
  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<LinearPair> kept) : pair(std::move(kept)) {}
    std::shared_ptr<LinearPair> pair;
  };
};

at::Tensor apply_pair(const Group& group, const at::Tensor& x, LinearPair pair) {
  if (group.size() == 1) return x;
  return LinearCollective::apply(x, std::make_shared<LinearPair>(std::move(pair)));
}

at::Tensor identity(const at::Tensor& x) { return x; }

AllToAll reversed(const AllToAll& layout) {
  return {.split_dim = layout.join_dim,
          .split_lengths = layout.join_lengths,
          .join_dim = layout.split_dim,
          .join_lengths = layout.split_lengths};
}

}  // namespace

at::Tensor copy_to_group(const Group& group, const at::Tensor& x) {
  return apply_pair(group, x, {identity, [group](const at::Tensor& g) { return summed(group, g); }});
}

at::Tensor reduce_from_group(const Group& group, const at::Tensor& x) {
  return apply_pair(group, x, {[group](const at::Tensor& v) { return summed(group, v); }, identity});
}

at::Tensor split_to_group(const Group& group, const at::Tensor& x, int64_t dim, const Lengths& lengths) {
  return apply_pair(group, x,
                    {[=](const at::Tensor& v) { return own_part(group, v, dim, lengths); },
                     [=](const at::Tensor& g) { return all_gather(group, g, dim, lengths); }});
}

at::Tensor gather_from_group(const Group& group, const at::Tensor& x, int64_t dim, const Lengths& lengths) {
  return apply_pair(group, x,
                    {[=](const at::Tensor& v) { return all_gather(group, v, dim, lengths); },
                     [=](const at::Tensor& g) { return own_part(group, g, dim, lengths); }});
}

at::Tensor all_gather_autograd(const Group& group, const at::Tensor& x, int64_t dim, const Lengths& lengths) {
  return apply_pair(group, x,
                    {[=](const at::Tensor& v) { return all_gather(group, v, dim, lengths); },
                     [=](const at::Tensor& g) { return scattered(group, g, dim, lengths); }});
}

at::Tensor reduce_scatter_autograd(const Group& group, const at::Tensor& x, int64_t dim, const Lengths& lengths) {
  return apply_pair(group, x,
                    {[=](const at::Tensor& v) { return scattered(group, v, dim, lengths); },
                     [=](const at::Tensor& g) { return all_gather(group, g, dim, lengths); }});
}

at::Tensor all_to_all_autograd(const Group& group, const at::Tensor& x, const AllToAll& layout) {
  return apply_pair(group, x,
                    {[=](const at::Tensor& v) { return all_to_all(group, v, layout); },
                     [=](const at::Tensor& g) { return all_to_all(group, g, reversed(layout)); }});
}

}  // namespace welkin::parallel
