// SPDX-License-Identifier: Apache-2.0
// Rows from a module, their states, and the check of strides.
#include "parallel/shard/param_table.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

bool dense(const at::Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

void check_same_strides(const ParamRow& row, const at::Tensor& other, const std::string& role) {
  WELKIN_CHECK(other.sizes() == row.local.sizes() && other.strides() == row.local.strides(),
               cat("a parameter and what belongs to it share strides: parameter=", row.name, ", strides=[",
                   join(row.local.strides(), ", "), "], ", role, "=[", join(other.strides(), ", "), "]"));
}

}  // namespace

DecayGroup decay_group_of(const std::string& name, at::IntArrayRef shape) {
  const bool weight = name.ends_with(".weight") || name == "weight";
  return weight && shape.size() >= 2 ? DecayGroup::Decay : DecayGroup::NoDecay;
}

at::Tensor& ParamRow::add_state(const std::string& role) {
  WELKIN_CHECK(!states.contains(role), cat("a state of this role exists: parameter=", name, ", role=", role));
  const at::NoGradGuard no_grad;
  return states[role] = at::zeros_like(local, local.options().dtype(at::kFloat).requires_grad(false), at::MemoryFormat::Preserve);
}

int64_t ParamRow::held_bytes() const {
  if (read) return static_cast<int64_t>(local.storage().nbytes() + (shard.defined() ? shard.storage().nbytes() : 0));
  const bool has_both = gathered_as.has_value() && shard.defined();
  if (!is_released) return static_cast<int64_t>(local.nbytes() + (has_both ? shard.nbytes() : 0));
  return static_cast<int64_t>(shard.nbytes() + local.storage().nbytes());
}

bool ParamRow::is_held_by(const model::Segment& segment) const {
  return segment.holds(name) || std::ranges::any_of(other_names, [&](const std::string& other) { return segment.holds(other); });
}

ParamTable ParamTable::of(const torch::nn::Module& module) {
  ParamTable table;
  std::unordered_map<const c10::TensorImpl*, size_t> seen;
  for (const auto& parameter : module.named_parameters()) {
    const auto [known, is_new] = seen.emplace(parameter->unsafeGetTensorImpl(), table.rows_.size());
    if (!is_new) {  // libtorch names a shared layer's weights once per owner
      table.rows_[known->second].other_names.push_back(parameter.key());
      continue;
    }
    ParamRow row;
    row.name = parameter.key();
    row.global_shape = parameter->sizes().vec();
    row.local = *parameter;
    row.decay = decay_group_of(row.name, parameter->sizes());
    table.names_.push_back(row.name);
    table.rows_.push_back(std::move(row));
  }
  return table;
}

ParamRow& ParamTable::at(const std::string& name) {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const ParamRow& row) { return row.name == name; });
  if (found != rows_.end()) return *found;
  std::vector<std::string> names;
  for (const ParamRow& row : rows_) names.push_back(row.name);
  const std::vector<std::string> near = nearest(name, names);
  constexpr size_t kShown = 5;
  if (near.empty() && names.size() > kShown) names.resize(kShown);
  throw ConfigError(
      "parallel", cat("the model has no such parameter: name=", name),
      cat(near.empty() ? "Its first names are: " : "The nearest names are: ", join(near.empty() ? names : near, ", ")));
}

int64_t ParamTable::num_parameters() const {
  int64_t total = elsewhere_;
  for (const ParamRow& row : rows_) total += c10::multiply_integers(row.global_shape);
  return total;
}

void ParamTable::keep(const std::function<bool(const ParamRow&)>& wanted) {
  std::erase_if(rows_, [&](const ParamRow& row) {
    if (wanted(row)) return false;
    elsewhere_ += c10::multiply_integers(row.global_shape);
    // One element in place of all: the shape stays, since modules print it.
    row.local.set_data(at::zeros({}, row.local.options().requires_grad(false)).expand(row.local.sizes()));
    return true;
  });
}

void ParamTable::check_strides() const {
  for (const ParamRow& row : rows_) {
    WELKIN_CHECK(dense(row.local), cat("a parameter is dense: parameter=", row.name));
    if (!row.shard.defined() && row.gradient().defined()) check_same_strides(row, row.gradient(), "gradient");
    for (const auto& [role, state] : row.states) check_same_strides(row, state, role);
  }
}

}  // namespace welkin::parallel
