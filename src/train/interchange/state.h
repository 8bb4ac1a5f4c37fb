// SPDX-License-Identifier: Apache-2.0
// The content of a checkpoint of any format, under our names: the model's tensors by their own names, the optimizer's as
// "optimizer.exp_avg.<parameter>", a run's scalars as "state.<name>". Values are read when they are asked for.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "train/checkpoint/checkpoint.h"

namespace welkin::train::interchange {

struct StateTensor {
  std::string name;
  std::string group;  // "model", "optimizer", "ema", "state", "picture"
  Dtype dtype = Dtype::F32;
  std::vector<int64_t> shape;
  std::function<at::Tensor()> read;  // row-major, on the CPU; keeps the file open
  // (count) elements from a place on, with memory for these alone; empty if the file gives whole tensors only.
  std::function<at::Tensor(const PiecePlace& place, int64_t count)> read_piece = {};

  at::Tensor piece(const PiecePlace& place, int64_t count) const;  // through read_piece or read

  uint64_t num_bytes() const;
};

// Hyper-parameters that the file states.
struct OptimizerSettings {
  std::string kind;  // "Adam", "AdamW", "SGD"; empty: there is no optimizer state, or another optimizer's
  std::optional<double> rate, beta1, beta2, eps, weight_decay, momentum;
};

struct State {
  std::filesystem::path path;
  std::string format;                   // "welkin", "safetensors", "torch", "torch (legacy)"
  std::vector<StateTensor> tensors;     // the model's in the order of the file, or of registration if that is known
  std::vector<std::string> parameters;  // the model's parameters in the order of registration; empty: not known
  std::optional<int64_t> iteration, epoch;
  OptimizerSettings optimizer;
  std::string config;                                      // YAML of a run (config/print/print.h)
  std::vector<std::pair<std::string, std::string>> facts;  // other facts, for people
  std::vector<std::string> notes;                          // what was left out or guessed, one line each

  const StateTensor* find(std::string_view name) const;
  bool has_group(std::string_view group) const;
};

struct StateChoice {
  std::string key{};                // of a .pt file: the key of the model's state dict; empty: found by itself
  std::string checkpoint = "best";  // of a run folder: best, newest or a step
  // Opens a folder; empty: this process opens it and verifies all of it.
  std::function<Checkpoint(const std::filesystem::path&)> open_folder = {};
};

// Opens a checkpoint folder (hashes are verified), a run folder, a safetensors file or a file of torch.save. Throws
// CheckpointError or DataError with the reason why the path is none of them.
State open_state(const std::filesystem::path& path, const StateChoice& choice = {});

// The state exactly as stored, for one format each.
State folder_state(Checkpoint folder);
State safetensors_state(const std::filesystem::path& path);
State torch_state(const std::filesystem::path& path, const std::string& key);

// The state with the moving averages instead of the weights, for the parameters of which the run kept one. CheckpointError when
// it holds none.
State averaged(State state);

// Removes the prefixes of PyTorch's wrappers: "module." (DDP) if every name has it, "_orig_mod." (torch.compile) anywhere.
// CheckpointError when two names become one.
void strip_wrappers(std::vector<std::string>& names);

}  // namespace welkin::train::interchange
