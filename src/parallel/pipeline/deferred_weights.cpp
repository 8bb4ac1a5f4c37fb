// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/deferred_weights.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "model/layers/linear.h"

namespace welkin::parallel {
namespace {

// The separate graph of a site's forward pass. Its root is held without the output's values.
struct LayerGraph : torch::CustomClassHolder {
  at::Tensor input, weight;  // both are leaves
  torch::autograd::Edge root;
  std::vector<at::Tensor> others;  // other parameters of the computation: a bias that is fused with it
  at::Tensor parameter;
  std::shared_ptr<WeightQueue> queue;
};

// The leaves of the graph except these two.
std::vector<at::Tensor> other_leaves(const LayerGraph& graph) {
  std::vector<at::Tensor> leaves;
  std::vector<std::shared_ptr<torch::autograd::Node>> left{graph.root.function};
  std::set<torch::autograd::Node*> seen;
  while (!left.empty()) {
    const std::shared_ptr<torch::autograd::Node> node = std::move(left.back());
    left.pop_back();
    if (!node || !seen.insert(node.get()).second) continue;
    if (const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node.get())) {
      if (!leaf->variable.is_same(graph.input) && !leaf->variable.is_same(graph.weight)) leaves.push_back(leaf->variable);
    }
    for (const torch::autograd::Edge& edge : node->next_edges()) left.push_back(edge.function);
  }
  return leaves;
}

// torch::autograd::grad of a root without values.
std::vector<at::Tensor> gradients_of(const torch::autograd::Edge& root, const std::vector<at::Tensor>& leaves,
                                     const at::Tensor& gradient, bool keeps_graph) {
  torch::autograd::edge_list wanted;
  for (const at::Tensor& leaf : leaves) wanted.push_back(torch::autograd::impl::gradient_edge(leaf));
  return torch::autograd::Engine::get_default_engine().execute({root}, {gradient}, keeps_graph, /*create_graph=*/false,
                                                               /*accumulate_grad=*/false, wanted);
}

struct DeferredWeight : torch::autograd::Function<DeferredWeight> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const model::Body& body, const std::shared_ptr<WeightQueue>& queue) {
    auto graph = c10::make_intrusive<LayerGraph>();
    at::Tensor output;
    {
      const at::AutoGradMode with_grad(true);
      graph->input = x.detach().requires_grad_(x.requires_grad());
      graph->weight = weight.detach().requires_grad_();
      output = body({graph->input, graph->weight}).at(0);
    }
    graph->root = torch::autograd::impl::gradient_edge(output);
    graph->others = other_leaves(*graph);
    graph->parameter = weight;
    graph->queue = queue;
    context->saved_data["graph"] = c10::IValue::make_capsule(graph);
    return output.detach();
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto holder = context->saved_data["graph"].toCapsule();
    const auto& graph = static_cast<LayerGraph&>(*holder);
    torch::autograd::variable_list gradients(4);
    std::vector<at::Tensor> leaves = graph.others;
    if (graph.input.requires_grad()) leaves.push_back(graph.input);
    if (!leaves.empty()) {
      const auto made = gradients_of(graph.root, leaves, grads[0], /*keeps_graph=*/true);
      for (size_t i = 0; i < graph.others.size(); ++i) accumulate_gradient(graph.others[i], made[i]);
      if (graph.input.requires_grad()) gradients[0] = made.back();
    }
    graph.queue->now.add(graph.parameter, [root = graph.root, weight = graph.weight, gradient = grads[0]] {
      return gradients_of(root, {weight}, gradient, /*keeps_graph=*/false).at(0);
    });
    context->saved_data.erase("graph");
    return gradients;
  }
};

}  // namespace

void defer_weight_gradients(model::Model& model, const ParamTable& table, const std::shared_ptr<WeightQueue>& queue) {
  for (const auto& module : model::modules_in(model)) {
    auto* linear = dynamic_cast<model::Linear*>(module.get());
    if (linear == nullptr) continue;
    const std::string weight = linear->path() + ".weight";
    if (std::ranges::find(table.rows(), weight, &ParamRow::name) == table.rows().end()) continue;
    for (model::Site* site : linear->own_sites()) {
      site->install([queue](model::Tensors in, const model::Body& body) {
        if (!at::GradMode::is_enabled() || !in.at(1).requires_grad()) return body(std::move(in));
        const model::Body with_rest = [body, rest = model::Tensors(in.begin() + 2, in.end())](model::Tensors two) {
          two.insert(two.end(), rest.begin(), rest.end());
          return body(std::move(two));
        };
        return model::Tensors{DeferredWeight::apply(in.at(0), in.at(1), with_rest, queue)};
      });
    }
  }
}

}  // namespace welkin::parallel
