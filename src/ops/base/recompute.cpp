// SPDX-License-Identifier: Apache-2.0
// The recomputation has its own graph, which is differentiated within the node. Its gradients of inputs and weights leave the
// node like those of any other, so that hooks on a weight's gradient (DDP's Reducer) run once.
#include "ops/base/recompute.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "ops/base/autocast.h"
#include "ops/base/once_differentiable.h"

namespace welkin::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Node;
using torch::autograd::variable_list;

// State that the node needs to rerun the part, besides its inputs.
struct KeptPart : torch::CustomClassHolder {
  TensorsFunction run;
  c10::DeviceType device = c10::kCPU;
  std::optional<at::ScalarType> low;  // autocast's type
  size_t num_inputs = 0;
};

// Keeps casts of weights made without a graph out of the cache, from which code with a graph would take them.
class NoCachedCasts {
 public:
  NoCachedCasts() : was_enabled_(at::autocast::is_autocast_cache_enabled()) { at::autocast::set_autocast_cache_enabled(false); }
  ~NoCachedCasts() { at::autocast::set_autocast_cache_enabled(was_enabled_); }
  NoCachedCasts(const NoCachedCasts&) = delete;
  NoCachedCasts& operator=(const NoCachedCasts&) = delete;

 private:
  bool was_enabled_;
};

// The same values as leaves of another graph.
variable_list cut_off(at::TensorList tensors) {
  variable_list own;
  for (const at::Tensor& tensor : tensors) own.push_back(tensor.detach().requires_grad_(tensor.requires_grad()));
  return own;
}

// Autocast caches casts of leaves, and sums their users' gradients in the low type. Aliases of inputs are not leaves.
variable_list no_leaves(const variable_list& tensors) {
  variable_list aliases;
  for (const at::Tensor& tensor : tensors) aliases.push_back(at::alias(tensor));
  return aliases;
}

// Throws for a leaf of the graph that is not among `leaves`: it would get no gradient, and silently stop learning.
void check_leaves(const variable_list& ends, const variable_list& leaves) {
  std::unordered_set<const Node*> known, seen;
  for (const at::Tensor& leaf : leaves) {
    if (leaf.defined() && leaf.requires_grad()) known.insert(torch::autograd::impl::gradient_edge(leaf).function.get());
  }
  std::vector<const Node*> open;
  for (const at::Tensor& end : ends) open.push_back(end.grad_fn().get());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (node == nullptr || known.contains(node) || !seen.insert(node).second) continue;
    if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node)) {
      throw ConfigError(
          "ops",
          cat("a part that runs again reads a parameter that is none of its inputs and not among its weights, and would "
              "not train it: shape=(",
              join(leaf->variable.sizes().vec(), ", "), ")"),
          "Pass it to the site as an input, or give it a name below the site's (docs/guide/plugins.md)");
    }
    for (const torch::autograd::Edge& edge : node->next_edges()) open.push_back(edge.function.get());
  }
}

struct Recomputed : torch::autograd::Function<Recomputed> {
  static variable_list forward(AutogradContext* context, at::TensorList in, at::TensorList weights,
                               const c10::intrusive_ptr<KeptPart>& part) {
    variable_list kept = in.vec();
    kept.insert(kept.end(), weights.begin(), weights.end());
    context->save_for_backward(std::move(kept));
    context->saved_data["part"] = c10::IValue::make_capsule(part);
    context->set_materialize_grads(false);  // unused inputs then have no gradient, nor have the weights behind them
    const NoCachedCasts no_cached_casts;
    variable_list own;
    for (const at::Tensor& tensor : in) own.push_back(tensor.detach());
    return part->run(std::move(own));
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    once_differentiable("a part that is run again (activation checkpointing)");
    const auto& part = static_cast<const KeptPart&>(*context->saved_data.at("part").toCapsule());
    variable_list leaves = context->get_saved_variables();
    const variable_list in = cut_off(at::TensorList(leaves).slice(0, part.num_inputs));
    std::copy(in.begin(), in.end(), leaves.begin());
    const variable_list out = run_again(part, in);

    variable_list ends, of_ends;
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i].requires_grad() || !grads[i].defined()) continue;
      ends.push_back(out[i]);
      of_ends.push_back(grads[i]);
    }
    variable_list result(leaves.size() + 1);  // the last represents the part
    if (ends.empty()) return result;
    check_leaves(ends, leaves);
    variable_list wanted;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (context->needs_input_grad(i)) wanted.push_back(leaves[i]);
    }
    const variable_list found = torch::autograd::grad(ends, wanted, of_ends, /*retain_graph=*/false, /*create_graph=*/false,
                                                      /*allow_unused=*/true);
    for (size_t i = 0, next = 0; i < leaves.size(); ++i) {
      if (context->needs_input_grad(i)) result[i] = found[next++];
    }
    return result;
  }

  static variable_list run_again(const KeptPart& part, const variable_list& in) {
    RECORD_FUNCTION("welkin::forward_again", std::vector<c10::IValue>());
    const at::AutoGradMode with_graph(true);
    const AutocastGuard autocast(part.device, part.low);
    return part.run(no_leaves(in));
  }
};

}  // namespace

std::vector<at::Tensor> recomputed(TensorsFunction part, const std::vector<at::Tensor>& in,
                                   const std::vector<at::Tensor>& weights) {
  auto kept = c10::make_intrusive<KeptPart>();
  kept->run = std::move(part);
  kept->device = in.at(0).device().type();
  if (at::autocast::is_autocast_enabled(kept->device)) kept->low = at::autocast::get_autocast_dtype(kept->device);
  kept->num_inputs = in.size();
  return Recomputed::apply(at::TensorList(in), at::TensorList(weights), kept);
}

}  // namespace welkin::ops
