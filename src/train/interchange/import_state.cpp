// SPDX-License-Identifier: Apache-2.0
#include "train/interchange/import_state.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "train/checkpoint/format/stored_tensor.h"

namespace welkin::train::interchange {
namespace {

namespace fs = std::filesystem;

at::Tensor imported_value(const StateTensor& tensor, bool as_stored, std::vector<std::string>& notes) {
  at::Tensor value = tensor.read();
  if (as_stored || !value.is_floating_point() || value.scalar_type() == at::kFloat) return value;
  at::Tensor single = value.to(at::kFloat);
  if (tensor.dtype == Dtype::F64 && !single.to(at::kDouble).equal(value)) {
    notes.push_back(cat("rounded from float64 to float32: ", tensor.name));
  }
  return single;
}

struct ImportedState {
  CheckpointIndex index;
  std::vector<CheckpointGroup> groups;
  ImportReport report;
};

void add_group(ImportedState& imported, const State& state, const std::string& group, bool as_stored) {
  CheckpointGroup tensors{.name = group, .tensors = {}};
  const std::string prefix = group == "model" ? "" : group + ".";
  for (const StateTensor& tensor : state.tensors) {
    if (tensor.group != group) continue;
    tensors.tensors.push_back({tensor.name.substr(prefix.size()), imported_value(tensor, as_stored, imported.report.notes)});
  }
  if (!tensors.tensors.empty()) imported.groups.push_back(std::move(tensors));
}

void add_fact(CheckpointIndex& index, const char* name, const std::optional<double>& value) {
  if (!value) return;
  std::array<char, 32> digits{};  // enough digits to bring the same number back
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), *value).ptr;
  index.facts[name] = std::string(digits.data(), end);
}

std::string shape_text(const std::vector<int64_t>& shape) { return cat("(", join(shape, ","), ")"); }

// At most three of the names, for messages.
std::string first_of(const std::vector<std::string>& names) {
  const std::vector<std::string> first(names.begin(),
                                       std::next(names.begin(), static_cast<std::ptrdiff_t>(std::min<size_t>(3, names.size()))));
  return cat(names.size(), names.empty() ? "" : cat(" (", join(first, " "), names.size() > 3 ? " ..." : "", ")"));
}

// SC23's model and DL4SCI25's differ in this key alone.
std::string projection_hint(const std::vector<std::string>& lacking, const std::vector<std::string>& surplus) {
  const auto any = [](const std::vector<std::string>& names, std::string_view ending) {
    return std::ranges::any_of(names, [ending](const std::string& name) { return name.ends_with(ending); });
  };
  constexpr std::string_view kJoint = ".attn.qkv.weight", kSeparate = ".attn.q.weight";
  if (any(lacking, kSeparate) && any(surplus, kJoint)) return "The file has joint projections, those of qkv=joint. ";
  if (any(lacking, kJoint) && any(surplus, kSeparate)) return "The file has separate projections, those of qkv=separate. ";
  return "";
}

void check_weights(const State& state, const CheckpointGroup& model) {
  std::vector<std::string> lacking, surplus, misshapen;
  for (const CheckpointTensor& wanted : model.tensors) {
    const StateTensor* found = state.find(wanted.name);
    if (found == nullptr || found->group != "model") {
      lacking.push_back(wanted.name);
    } else if (whole_shape_of(wanted) != found->shape) {
      misshapen.push_back(cat(wanted.name, " ", shape_text(found->shape), " for ", shape_text(whole_shape_of(wanted))));
    }
  }
  for (const StateTensor& tensor : state.tensors) {
    if (tensor.group == "model" &&
        std::ranges::find(model.tensors, tensor.name, &CheckpointTensor::name) == model.tensors.end()) {
      surplus.push_back(tensor.name);
    }
  }
  if (lacking.empty() && surplus.empty() && misshapen.empty()) return;
  throw CheckpointError("checkpoint",
                        cat("the weights are not those of this model: path=", state.path.string(), ", not stored=",
                            first_of(lacking), ", not wanted=", first_of(surplus), ", of another shape=", first_of(misshapen)),
                        cat(projection_hint(lacking, surplus),
                            "Give the configuration that the weights belong to; welkin ckpt inspect lists them. ",
                            "A run may begin with what fits: --init_partial, and --init_map for other names"));
}

ImportedState imported_state(const State& state, const ImportOptions& options) {
  ImportedState imported;
  imported.report.notes = state.notes;
  add_group(imported, state, "model", options.as_stored);
  if (imported.groups.empty()) {
    throw CheckpointError("checkpoint", cat("there are no weights to import: path=", state.path.string()), "Check the file");
  }
  imported.report.model_tensors = imported.groups.back().tensors.size();
  if (options.optimizer && state.has_group("optimizer")) {
    add_group(imported, state, "optimizer", options.as_stored);
    imported.report.optimizer_tensors = imported.groups.back().tensors.size();
  }
  CheckpointIndex& index = imported.index;
  index.position.iteration = imported.report.iteration = imported_iteration(state, options);
  index.position.epoch = state.epoch.value_or(0);
  index.config = options.config.empty() ? state.config : options.config;
  index.parameters = state.parameters;
  if (index.parameters.empty()) {  // the order of a state dict is that of registration
    for (const CheckpointTensor& tensor : imported.groups.front().tensors) index.parameters.push_back(tensor.name);
  }
  index.learning_rate = state.optimizer.rate;
  index.origin = state.path.filename().string();
  if (!state.optimizer.kind.empty()) index.facts["optimizer"] = state.optimizer.kind;
  add_fact(index, "optimizer.beta1", state.optimizer.beta1);
  add_fact(index, "optimizer.beta2", state.optimizer.beta2);
  add_fact(index, "optimizer.eps", state.optimizer.eps);
  add_fact(index, "optimizer.weight_decay", state.optimizer.weight_decay);
  add_fact(index, "optimizer.momentum", state.optimizer.momentum);
  return imported;
}

}  // namespace

int64_t imported_iteration(const State& state, const ImportOptions& options) {
  if (state.iteration) return *state.iteration;
  const StateTensor* steps = options.optimizer ? state.find("optimizer.steps") : nullptr;
  return steps == nullptr ? 0 : static_cast<int64_t>(steps->read().item<double>());
}

ImportReport import_state(const State& state, const ImportOptions& options, const fs::path& folder) {
  if (fs::exists(folder)) {
    throw CheckpointError("checkpoint", cat("the folder exists: path=", folder.string()), "Name one that does not, or remove it");
  }
  const ImportedState imported = imported_state(state, options);
  if (const fs::path parent = folder.parent_path(); !parent.empty()) make_folders(parent);
  write_checkpoint(folder, imported.index, imported.groups);
  return imported.report;
}

void load_weights(const State& state, const CheckpointGroup& model) {
  check_weights(state, model);
  for (const CheckpointTensor& wanted : model.tensors) load_weight(*state.find(wanted.name), wanted);
}

std::vector<int64_t> whole_shape_of(const CheckpointTensor& tensor) {
  return tensor.whole_shape.empty() ? tensor.value.sizes().vec() : tensor.whole_shape;
}

void load_weight(const StateTensor& stored, const CheckpointTensor& tensor) {
  const at::NoGradGuard no_grad;
  if (tensor.value.is_meta()) return;
  const at::Tensor values =
      tensor.piece ? stored.piece(*tensor.piece, tensor.value.numel()).view(tensor.value.sizes()) : stored.read();
  if (tensor.store) {
    tensor.store(values);
  } else {
    tensor.value.detach().copy_(values);
  }
}

}  // namespace welkin::train::interchange
