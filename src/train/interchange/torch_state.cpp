// SPDX-License-Identifier: Apache-2.0
// Finds the model, the optimizer and the run's position in a file of torch.save.
#include <algorithm>
#include <array>
#include <memory>

#include "core/error.h"
#include "core/text.h"
#include "train/interchange/state.h"
#include "train/interchange/torch_optimizer.h"

namespace welkin::train::interchange {
namespace {

using archive::Pickle;
using archive::PickleKind;
using archive::PickleNode;
using archive::TorchContent;

// The keys under which programs keep the parts of a checkpoint, the most usual first.
constexpr std::array<std::string_view, 10> kModelKeys = {"model_state", "model_state_dict", "state_dict", "model",  "net",
                                                         "network",     "module",           "weights",    "params", "ema"};
constexpr std::array<std::string_view, 4> kOptimizerKeys = {"optimizer_state_dict", "optimizer_state", "optimizer", "optim"};
constexpr std::array<std::string_view, 5> kIterationKeys = {"iters", "iteration", "iter", "global_step", "step"};
constexpr std::array<std::string_view, 1> kEpochKeys = {"epoch"};
constexpr size_t kMostFacts = 50;
constexpr uint64_t kFreeBytes = uint64_t{64} << 20;
constexpr uint64_t kMostCopies = 8;  // times the stored bytes: tied weights are few

class TorchStateReader {
 public:
  TorchStateReader(TorchFilePtr file, const std::filesystem::path& path, std::string key)
      : file_(std::move(file)), pickle_(file_->content().pickle()), key_(std::move(key)) {
    state_.path = path;
    state_.format = file_->content().is_legacy() ? "torch (legacy)" : "torch";
  }

  State read() {
    const PickleNode& model = find_model();
    add_model(model);
    const PickleNode& root = pickle_.top();
    if (&model != &root) {
      state_.iteration = first_integer(kIterationKeys);
      state_.epoch = first_integer(kEpochKeys);
      add_optimizer();
      add_facts(model);
    }
    return std::move(state_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why, const std::string& remedy) const {
    throw CheckpointError("checkpoint", cat(why, ", file=", state_.path.string()), remedy);
  }

  bool is_state_dict(const PickleNode& node) const {
    if (node.kind != PickleKind::Dict || node.items.empty()) return false;
    for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
      if (pickle_[node.items[i]].kind != PickleKind::Text || pickle_[node.items[i + 1]].kind != PickleKind::Tensor) return false;
    }
    return true;
  }

  // Names of the values of the root that are state dicts.
  std::vector<std::string> state_dicts() const {
    std::vector<std::string> names;
    const PickleNode& root = pickle_.top();
    for (size_t i = 0; i + 1 < root.items.size(); i += 2) {
      if (is_state_dict(pickle_[root.items[i + 1]])) names.push_back(pickle_[root.items[i]].text);
    }
    return names;
  }

  const PickleNode& find_model() const {
    const PickleNode& root = pickle_.top();
    if (root.kind != PickleKind::Dict) refuse("it holds no dictionary", "Save model.state_dict()");
    if (!key_.empty()) {
      const PickleNode* chosen = pickle_.find(root, key_);
      if (chosen != nullptr && is_state_dict(*chosen)) return *chosen;
      refuse(cat("it has no state dict of this name: key=", key_), cat("Choose one of: ", join(state_dicts(), ", ")));
    }
    if (is_state_dict(root)) return root;
    for (const std::string_view key : kModelKeys) {
      const PickleNode* value = pickle_.find(root, key);
      if (value != nullptr && is_state_dict(*value)) return *value;
    }
    const auto names = state_dicts();
    if (names.size() == 1) return *pickle_.find(root, names.front());
    if (names.empty()) refuse("it holds no state dict (names to tensors)", "Save model.state_dict(), alone or in a dictionary");
    refuse(cat("it holds several state dicts: ", join(names, ", ")), "Choose one with --key");
  }

  void add_model(const PickleNode& model) {
    std::vector<std::string> names;
    uint64_t bytes = 0, stored = 0;
    for (size_t i = 0; i + 1 < model.items.size(); i += 2) {
      names.push_back(pickle_[model.items[i]].text);
      bytes += std::min(TorchContent::bytes_of(pickle_[model.items[i + 1]]), uint64_t{1} << 50);
    }
    for (const PickleNode& node : pickle_.nodes) {
      if (node.kind == PickleKind::Storage) stored += static_cast<uint64_t>(node.integer) * dtype_bytes(node.dtype);
    }
    if (bytes > kFreeBytes && bytes / kMostCopies > stored) {
      refuse(cat("its tensors repeat few stored bytes many times: bytes=", bytes, ", stored=", stored),
             "Save it again in PyTorch");
    }
    strip_wrappers(names);
    for (size_t i = 0; i < names.size(); ++i) {
      state_.tensors.push_back(torch_tensor(file_, pickle_[model.items[2 * i + 1]], names[i], "model"));
    }
  }

  template <size_t N>
  std::optional<int64_t> first_integer(const std::array<std::string_view, N>& keys) const {
    for (const std::string_view key : keys) {
      const PickleNode* value = pickle_.find(pickle_.top(), key);
      if (value != nullptr && value->kind == PickleKind::Int && value->integer >= 0) return value->integer;
    }
    return {};
  }

  void add_optimizer() {
    for (const std::string_view key : kOptimizerKeys) {
      const PickleNode* value = pickle_.find(pickle_.top(), key);
      if (value == nullptr || value->kind != PickleKind::Dict) continue;
      return add_torch_optimizer(state_, file_, *value);
    }
  }

  // Adds numbers and texts beside the tensors; of other values only the names.
  void add_facts(const PickleNode& model) {
    const PickleNode& root = pickle_.top();
    for (size_t i = 0; i + 1 < root.items.size() && state_.facts.size() < kMostFacts; i += 2) {
      const PickleNode& value = pickle_[root.items[i + 1]];
      const std::string name = pickle_[root.items[i]].text.substr(0, 80);
      if (&value == &model) continue;
      if (value.kind == PickleKind::Int) state_.facts.emplace_back(name, cat(value.integer));
      if (value.kind == PickleKind::Float) state_.facts.emplace_back(name, cat(value.number));
      if (value.kind == PickleKind::Text) state_.facts.emplace_back(name, value.text.substr(0, 200));
      if (value.kind == PickleKind::Dict) state_.facts.emplace_back(name, cat("dictionary, ", value.items.size() / 2, " keys"));
    }
  }

  TorchFilePtr file_;
  const Pickle& pickle_;
  std::string key_;
  State state_;
};

}  // namespace

State torch_state(const std::filesystem::path& path, const std::string& key) {
  return TorchStateReader(std::make_shared<const archive::TorchFile>(path), path, key).read();
}

}  // namespace welkin::train::interchange
