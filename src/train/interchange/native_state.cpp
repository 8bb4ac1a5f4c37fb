// SPDX-License-Identifier: Apache-2.0
// Our own checkpoints, and safetensors files, as a State.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

#include "config/resolve/resolve.h"
#include "core/archive/safetensors.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/format/stored_tensor.h"
#include "train/checkpoint/format/tensor_boxes.h"
#include "train/interchange/state.h"

namespace welkin::train::interchange {
namespace {

namespace fs = std::filesystem;

Dtype known_dtype(const std::string& name) {
  const auto dtype = dtype_of_name(name);
  if (!dtype) throw CheckpointError("checkpoint", cat("unknown element type: dtype=", name), "Use a newer version of welkin");
  return *dtype;
}

int64_t world_size(const CheckpointIndex& index) {
  constexpr int64_t kMostRanks = 1 << 20;
  int64_t ranks = 1;
  for (const auto& [axis, size] : index.mesh) ranks *= std::clamp<int64_t>(size, 1, kMostRanks / ranks);
  return ranks;
}

// Without a configuration: the facts that an import has kept of the file's optimizer.
void read_settings(OptimizerSettings& settings, const std::map<std::string, std::string>& facts) {
  const auto text = [&](const char* name) {
    const auto found = facts.find(name);
    return found == facts.end() ? std::string() : found->second;
  };
  const auto number = [&](const char* name) -> std::optional<double> {
    const std::string value = text(name);
    return value.empty() ? std::nullopt : std::optional(std::strtod(value.c_str(), nullptr));
  };
  settings = {.kind = text("optimizer"),
              .rate = {},
              .beta1 = number("optimizer.beta1"),
              .beta2 = number("optimizer.beta2"),
              .eps = number("optimizer.eps"),
              .weight_decay = number("optimizer.weight_decay"),
              .momentum = number("optimizer.momentum")};
}

// Reads the optimizer's hyper-parameters from the run's configuration. A configuration that does not load costs only these.
void read_config(State& state, const CheckpointIndex& index) {
  state.config = index.config;
  if (state.config.empty()) return read_settings(state.optimizer, index.facts);
  try {
    const auto config = config::from_yaml(state.config, (state.path / "index.json").string(), world_size(index));
    const config::OptimizerConfig& optimizer = config.optimizer;
    state.optimizer = {.kind = optimizer.optimizer,
                       .rate = config.schedule.start_lr,
                       .beta1 = {},
                       .beta2 = {},
                       .eps = optimizer.eps,
                       .weight_decay = optimizer.weight_decay,
                       .momentum = optimizer.momentum};
    if (optimizer.betas.size() == 2) {
      state.optimizer.beta1 = optimizer.betas[0];
      state.optimizer.beta2 = optimizer.betas[1];
    }
  } catch (const ConfigError& error) {
    state.notes.push_back(cat("the configuration in it does not load, default hyper-parameters are used: ", error.what()));
  }
}

std::string mesh_text(const CheckpointIndex& index) {
  std::vector<std::string> axes;
  for (const auto& [axis, size] : index.mesh) axes.push_back(cat(axis, "=", size));
  return axes.empty() ? "one process" : join(axes, " ");
}

void read_index(State& state, const CheckpointIndex& index) {
  state.iteration = index.position.iteration;
  state.epoch = index.position.epoch;
  state.parameters = index.parameters;
  read_config(state, index);
  if (index.learning_rate) state.optimizer.rate = index.learning_rate;
  state.facts = {{"iteration", cat(index.position.iteration)},
                 {"epoch", cat(index.position.epoch, ", step ", index.position.step_in_epoch)},
                 {"seed", cat(index.seed)},
                 {"mesh", mesh_text(index)}};
  if (!index.origin.empty()) state.facts.emplace_back("origin", index.origin);
  if (index.validation_loss) state.facts.emplace_back("validation loss", cat(*index.validation_loss));
  if (index.best_loss) {
    const std::string metric = index.best_metric.empty() ? "loss" : index.best_metric;
    state.facts.emplace_back(cat("best ", metric, " of the run"), cat(*index.best_loss));
  }
  if (index.learning_rate) state.facts.emplace_back("learning rate", cat(*index.learning_rate));
  for (const auto& [name, text] : index.facts) state.facts.emplace_back(name, text);
  for (const auto& [name, file] : index.files) {
    state.facts.emplace_back(name, cat(file.bytes, " bytes, xxh3 ", hex_digits(file.xxh3), ", verified"));
  }
}

// Sorts the model first, in the order of registration; then the other groups by name.
void sort_tensors(State& state) {
  const auto place = [&](const StateTensor& tensor) {
    const auto group = tensor.group == "model" ? 0 : tensor.group == "optimizer" ? 1 : 2;
    const auto found = std::ranges::find(state.parameters, tensor.name);
    return std::pair(group, group == 0 ? std::distance(state.parameters.begin(), found) : 0);
  };
  std::ranges::stable_sort(state.tensors, {}, place);
}

}  // namespace

State folder_state(Checkpoint folder) {
  const auto checkpoint = std::make_shared<const Checkpoint>(std::move(folder));
  State state;
  state.path = checkpoint->folder();
  state.format = "welkin";
  for (const auto& [name, record] : checkpoint->index().tensors) {
    const Dtype dtype = known_dtype(record.dtype);
    state.tensors.push_back(
        {.name = name,
         .group = group_of_file(record.file),
         .dtype = dtype,
         .shape = record.shape,
         .read = [checkpoint, name = name] { return checkpoint->read(name); },
         .read_piece = [checkpoint, name = name, type = tensor_dtype(dtype)](
                           const PiecePlace& place, int64_t count) { return checkpoint->read_piece(name, place, count, type); }});
  }
  read_index(state, checkpoint->index());
  sort_tensors(state);
  return state;
}

State safetensors_state(const fs::path& path) {
  const auto file = std::make_shared<const SafetensorsFile>(path);
  State state;
  state.path = path;
  state.format = "safetensors";
  for (const auto& [key, value] : file->metadata()) state.facts.emplace_back(key, value.substr(0, 200));
  // Our own export marks its optimizer; in other files every tensor is the model's.
  const bool ours = file->metadata().contains("welkin.groups");
  std::vector<std::string> names = file->names();
  std::vector<std::string> shown = names;
  if (!ours) strip_wrappers(shown);
  for (size_t i = 0; i < names.size(); ++i) {
    const TensorInfo& info = file->info(names[i]);
    const auto read = [file, name = names[i]] {
      const TensorInfo& stored = file->info(name);
      at::Tensor value = at::empty(stored.shape, at::TensorOptions(tensor_dtype(stored.dtype)));
      copy_bytes_into(file->bytes(name), value);
      return value;
    };
    state.tensors.push_back({.name = shown[i],
                             .group = ours && shown[i].starts_with("optimizer.") ? "optimizer" : "model",
                             .dtype = info.dtype,
                             .shape = info.shape,
                             .read = read,
                             .read_piece = [file, name = names[i]](const PiecePlace& place, int64_t count) {
                               const TensorInfo& stored = file->info(name);
                               return piece_of_row_major(
                                   elements_in(file->bytes(name), tensor_dtype(stored.dtype)).view(stored.shape), place, count);
                             }});
  }
  sort_tensors(state);
  return state;
}

}  // namespace welkin::train::interchange
