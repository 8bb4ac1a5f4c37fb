// SPDX-License-Identifier: Apache-2.0
#include "train/interchange/torch_optimizer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "parallel/shard/param_table.h"
#include "train/checkpoint/format/stored_tensor.h"

namespace welkin::train::interchange {
namespace {

using archive::Pickle;
using archive::PickleKind;
using archive::PickleNode;

struct TorchGroup {
  std::vector<int64_t> params;
  std::vector<std::string> names;  // if the optimizer was made from named parameters
  const PickleNode* node = nullptr;
};

// The reason why the optimizer cannot be taken; becomes a note.
struct Unmatched {
  std::string why;
};

std::optional<double> number_in(const Pickle& pickle, const PickleNode& dict, std::string_view key) {
  const PickleNode* value = pickle.find(dict, key);
  if (value == nullptr) return {};
  if (value->kind == PickleKind::Float) return value->number;
  if (value->kind == PickleKind::Int) return static_cast<double>(value->integer);
  return {};
}

std::vector<TorchGroup> groups_of(const Pickle& pickle, const PickleNode& optimizer) {
  const PickleNode* list = pickle.find(optimizer, "param_groups");
  if (list == nullptr || list->kind != PickleKind::List || list->items.empty()) throw Unmatched{"it has no param_groups"};
  std::vector<TorchGroup> groups;
  for (const auto id : list->items) {
    TorchGroup group{.params = {}, .names = {}, .node = &pickle[id]};
    const PickleNode* params = pickle.find(pickle[id], "params");
    if (params == nullptr) throw Unmatched{"a group has no params"};
    for (const auto number : params->items) group.params.push_back(pickle[number].integer);
    if (const PickleNode* names = pickle.find(pickle[id], "param_names")) {
      for (const auto name : names->items) group.names.push_back(pickle[name].text);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

std::map<int64_t, const PickleNode*> states_of(const Pickle& pickle, const PickleNode& optimizer) {
  const PickleNode* dict = pickle.find(optimizer, "state");
  if (dict == nullptr || dict->kind != PickleKind::Dict) throw Unmatched{"it has no state"};
  std::map<int64_t, const PickleNode*> states;
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2) {
    const PickleNode& number = pickle[dict->items[i]];
    if (number.kind != PickleKind::Int) throw Unmatched{"its parameters are not numbered"};
    states[number.integer] = &pickle[dict->items[i + 1]];
  }
  return states;
}

// A candidate for the order of the parameters' numbers, over all groups.
using Order = std::vector<const StateTensor*>;

// The file's own order, and for two groups the order of programs that spare biases and norms from weight decay.
std::vector<Order> candidate_orders(const State& state, const std::vector<TorchGroup>& groups) {
  Order all, decaying, others;
  for (const StateTensor& tensor : state.tensors) {
    all.push_back(&tensor);
    const bool decays = parallel::decay_group_of(tensor.name, tensor.shape) == parallel::DecayGroup::Decay;
    (decays ? decaying : others).push_back(&tensor);
  }
  std::vector<Order> orders;
  if (groups.size() == 2 && groups[0].params.size() == decaying.size()) {
    orders.push_back(decaying);
    orders.back().insert(orders.back().end(), others.begin(), others.end());
  }
  orders.push_back(all);
  return orders;
}

bool fits(const Pickle& pickle, const PickleNode& entry, const StateTensor& tensor) {
  for (const char* key : {"exp_avg", "exp_avg_sq", "momentum_buffer"}) {
    const PickleNode* value = pickle.find(entry, key);
    if (value != nullptr && value->kind == PickleKind::Tensor && value->shape != tensor.shape) return false;
  }
  return true;
}

using NameOf = std::map<int64_t, const StateTensor*>;

NameOf by_param_names(const State& state, const std::vector<TorchGroup>& groups) {
  NameOf names;
  std::vector<std::string> given;
  for (const TorchGroup& group : groups) given.insert(given.end(), group.names.begin(), group.names.end());
  strip_wrappers(given);
  size_t next = 0;
  for (const TorchGroup& group : groups) {
    for (const int64_t param : group.params) {
      const StateTensor* tensor = state.find(given[next++]);
      if (tensor == nullptr) throw Unmatched{cat("param_names has a name that the model has not: ", given[next - 1])};
      names[param] = tensor;
    }
  }
  return names;
}

NameOf by_order(const State& state, const Pickle& pickle, const std::vector<TorchGroup>& groups,
                const std::map<int64_t, const PickleNode*>& states) {
  std::vector<int64_t> params;
  for (const TorchGroup& group : groups) params.insert(params.end(), group.params.begin(), group.params.end());
  for (const Order& order : candidate_orders(state, groups)) {
    if (order.size() != params.size()) continue;
    NameOf names;
    bool good = true;
    for (size_t i = 0; i < params.size() && good; ++i) {
      names[params[i]] = order[i];
      const auto entry = states.find(params[i]);
      good = entry == states.end() || fits(pickle, *entry->second, *order[i]);
    }
    if (good) return names;
  }
  throw Unmatched{cat("its ", params.size(), " numbered parameters do not match the ", state.tensors.size(),
                      " tensors of the model in order and shape")};
}

NameOf names_of(const State& state, const Pickle& pickle, const std::vector<TorchGroup>& groups,
                const std::map<int64_t, const PickleNode*>& states) {
  const bool named = std::ranges::all_of(
      groups, [](const TorchGroup& group) { return !group.params.empty() && group.names.size() == group.params.size(); });
  return named ? by_param_names(state, groups) : by_order(state, pickle, groups, states);
}

StateTensor constant(std::string name, Dtype dtype, std::vector<int64_t> shape, double value) {
  return {.name = std::move(name), .group = "optimizer", .dtype = dtype, .shape = shape, .read = [=] {
            return at::full(shape, value, at::TensorOptions(tensor_dtype(dtype)));
          }};
}

// The number of steps of one parameter: a tensor; a number in files of old versions.
std::optional<double> step_of(const TorchFilePtr& file, const PickleNode& entry) {
  const Pickle& pickle = file->content().pickle();
  const PickleNode* step = pickle.find(entry, "step");
  if (step == nullptr) return {};
  if (step->kind != PickleKind::Tensor) return number_in(pickle, entry, "step");
  const at::Tensor value = torch_tensor(file, *step, "step", "optimizer").read();
  return value.numel() == 1 ? std::optional(value.item<double>()) : std::nullopt;
}

class OptimizerReader {
 public:
  OptimizerReader(State& state, TorchFilePtr file, const PickleNode& optimizer)
      : state_(state),
        file_(std::move(file)),
        pickle_(file_->content().pickle()),
        groups_(groups_of(pickle_, optimizer)),
        states_(states_of(pickle_, optimizer)),
        names_(names_of(state_, pickle_, groups_, states_)) {}

  void read() {
    const bool adam = has("exp_avg"), sgd = has("momentum_buffer");
    if (!adam && !sgd) throw Unmatched{"it has neither averages (Adam) nor momentum (SGD)"};
    if (has("max_exp_avg_sq")) throw Unmatched{"it is Adam with amsgrad, which has no counterpart here"};
    std::vector<StateTensor> found;
    if (adam) found.push_back(constant("optimizer.steps", Dtype::F32, {}, common_step()));
    for (const auto& [number, parameter] : names_) {
      if (adam) {
        found.push_back(entry(number, *parameter, "exp_avg", "optimizer.exp_avg."));
        found.push_back(entry(number, *parameter, "exp_avg_sq", "optimizer.exp_avg_sq."));
      } else {
        found.push_back(entry(number, *parameter, "momentum_buffer", "optimizer.momentum."));
      }
    }
    if (zeros_ > 0) state_.notes.push_back(cat(zeros_, " states of the optimizer were absent and became zeros"));
    read_settings(adam);
    read_parameters();
    std::ranges::move(found, std::back_inserter(state_.tensors));
  }

 private:
  bool has(std::string_view key) const {
    return std::ranges::any_of(states_, [&](const auto& row) {
      const PickleNode* value = pickle_.find(*row.second, key);
      return value != nullptr && value->kind == PickleKind::Tensor;
    });
  }

  StateTensor entry(int64_t number, const StateTensor& parameter, std::string_view key, std::string_view prefix) {
    const auto row = states_.find(number);
    const PickleNode* value = row == states_.end() ? nullptr : pickle_.find(*row->second, key);
    const std::string name = cat(prefix, parameter.name);
    if (value == nullptr || value->kind != PickleKind::Tensor) {
      ++zeros_;
      return constant(name, Dtype::F32, parameter.shape, 0);
    }
    if (value->shape != parameter.shape) throw Unmatched{cat("a state has another shape than its parameter: ", name)};
    return torch_tensor(file_, *value, name, "optimizer");
  }

  // Our optimizer has one count for all parameters.
  double common_step() const {
    std::optional<double> common;
    for (const auto& [number, entry] : states_) {
      const auto step = step_of(file_, *entry);
      if (!step) continue;
      if (common && *common != *step) throw Unmatched{cat("its parameters have taken different steps: ", *common, ", ", *step)};
      common = step;
    }
    if (!common) throw Unmatched{"it does not say how many steps it has taken"};
    return *common;
  }

  // Adds the names in the order of the state dict, which is that of registration.
  void read_parameters() {
    std::set<const StateTensor*> parameters;
    for (const auto& [number, parameter] : names_) parameters.insert(parameter);
    for (const StateTensor& tensor : state_.tensors) {
      if (parameters.contains(&tensor)) state_.parameters.push_back(tensor.name);
    }
  }

  void read_settings(bool adam) {
    const PickleNode& group = *groups_.front().node;
    OptimizerSettings& settings = state_.optimizer;
    const PickleNode* decoupled = pickle_.find(group, "decoupled_weight_decay");
    settings.kind = !adam ? "SGD" : decoupled != nullptr && decoupled->integer != 0 ? "AdamW" : "Adam";
    settings.rate = number_in(pickle_, group, "lr");
    settings.eps = number_in(pickle_, group, "eps");
    settings.weight_decay = number_in(pickle_, group, "weight_decay");
    settings.momentum = number_in(pickle_, group, "momentum");
    const PickleNode* betas = pickle_.find(group, "betas");
    if (betas != nullptr && betas->items.size() == 2 && pickle_[betas->items[0]].kind == PickleKind::Float) {
      settings.beta1 = pickle_[betas->items[0]].number;
      settings.beta2 = pickle_[betas->items[1]].number;
    }
  }

  State& state_;
  TorchFilePtr file_;
  const Pickle& pickle_;
  std::vector<TorchGroup> groups_;
  std::map<int64_t, const PickleNode*> states_;
  NameOf names_;
  int64_t zeros_ = 0;
};

}  // namespace

StateTensor torch_tensor(const TorchFilePtr& file, const PickleNode& node, std::string name, std::string group) {
  return {.name = std::move(name), .group = std::move(group), .dtype = node.dtype, .shape = node.shape, .read = [file, &node] {
            const auto bytes = file->content().row_major(node);
            at::Tensor value = at::empty(node.shape, at::TensorOptions(tensor_dtype(node.dtype)));
            if (!bytes.empty()) std::memcpy(value.mutable_data_ptr(), bytes.data(), bytes.size());
            return value;
          }};
}

void add_torch_optimizer(State& state, const TorchFilePtr& file, const PickleNode& optimizer) {
  try {
    OptimizerReader(state, file, optimizer).read();
  } catch (const Unmatched& problem) {
    state.notes.push_back(cat("the optimizer's state is left out: ", problem.why));
  }
}

}  // namespace welkin::train::interchange
