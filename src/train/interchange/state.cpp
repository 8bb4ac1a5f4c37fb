// SPDX-License-Identifier: Apache-2.0
#include "train/interchange/state.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "core/archive/torch_file.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/checkpoint/format/tensor_boxes.h"
#include "train/interchange/model_package.h"

namespace welkin::train::interchange {
namespace {

namespace fs = std::filesystem;

// False for a pipe, at which an open would wait: what reads other files refuses it.
bool is_torch_file(const fs::path& path) {
  std::error_code unknown;
  if (!fs::is_regular_file(path, unknown)) return false;
  std::array<char, 64> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return archive::TorchContent::recognises(std::as_bytes(std::span(head.data(), static_cast<size_t>(file.gcount()))));
}

// Removes `part` at the beginning of every component.
std::string without(std::string name, std::string_view part) {
  for (size_t at = 0; (at = name.find(part, at)) != std::string::npos;) {
    if (at == 0 || name[at - 1] == '.') {
      name.erase(at, part.size());
    } else {
      at += part.size();
    }
  }
  return name;
}

}  // namespace

uint64_t StateTensor::num_bytes() const {
  const auto overflow = [&] { throw DataError("checkpoint", cat("a tensor is too large: tensor=", name), "Check the file"); };
  return static_cast<uint64_t>(checked_product(shape, overflow)) * dtype_bytes(dtype);
}

at::Tensor StateTensor::piece(const PiecePlace& place, int64_t count) const {
  return read_piece ? read_piece(place, count) : piece_of_row_major(read(), place, count);
}

const StateTensor* State::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &StateTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

bool State::has_group(std::string_view group) const {
  return std::ranges::any_of(tensors, [&](const StateTensor& tensor) { return tensor.group == group; });
}

State averaged(State state) {
  if (!state.has_group(kAverageGroup)) {
    throw CheckpointError("checkpoint", cat("it holds no moving average of weights: path=", state.path.string()),
                          "Train with --set ema_decay=0.999, or leave --ema out");
  }
  for (StateTensor& tensor : state.tensors) {
    if (tensor.group != "model") continue;
    const StateTensor* const average = state.find(stored_name(kAverageGroup, tensor.name));
    if (average == nullptr) continue;
    tensor.read = average->read;
    tensor.read_piece = average->read_piece;
  }
  std::erase_if(state.tensors, [](const StateTensor& tensor) { return tensor.group == kAverageGroup; });
  return state;
}

void strip_wrappers(std::vector<std::string>& names) {
  constexpr std::string_view kParallel = "module.", kCompiled = "_orig_mod.";
  for (std::string& name : names) name = without(std::move(name), kCompiled);
  while (!names.empty() && std::ranges::all_of(names, [&](const auto& name) { return name.starts_with(kParallel); })) {
    for (std::string& name : names) name.erase(0, kParallel.size());
  }
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) {
      throw CheckpointError("checkpoint", cat("two tensors have the same name after wrapper prefixes are removed: tensor=", name),
                            "Save the state_dict() of the inner module");
    }
  }
}

State open_state(const fs::path& path, const StateChoice& choice) {
  std::error_code ignored;
  const auto open = [&](const fs::path& folder) { return choice.open_folder ? choice.open_folder(folder) : Checkpoint(folder); };
  if (fs::is_directory(path, ignored)) {
    if (is_package(path)) return package_state(path);
    if (fs::exists(path / "index.json", ignored)) return folder_state(open(path));
    if (fs::exists(path / "checkpoints", ignored)) return folder_state(open(find_checkpoint(path, choice.checkpoint)));
    throw CheckpointError("checkpoint", cat("the folder is neither a checkpoint nor a run: path=", path.string()),
                          "Give a folder with index.json (step_N), a run folder, a .safetensors or a .pt file");
  }
  if (!fs::exists(path, ignored)) {
    throw CheckpointError("checkpoint", cat("there is no such checkpoint: path=", path.string()), "Check the path");
  }
  return is_torch_file(path) ? torch_state(path, choice.key) : safetensors_state(path);
}

}  // namespace welkin::train::interchange
