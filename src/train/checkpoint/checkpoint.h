// SPDX-License-Identifier: Apache-2.0
// One checkpoint: a folder step_N/ with safetensors files and index.json. Written aside, synced, renamed: it is whole or not
// there.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/archive/safetensors.h"
#include "train/checkpoint/checkpoint_index.h"

namespace welkin::train {

// Which piece of a tensor a rank has (TensorRecord).
struct PiecePlace {
  std::vector<int64_t> whole_shape;
  PieceLayout layout;
  int64_t part = 0, begin = 0;
};

struct CheckpointTensor {
  std::string name;
  at::Tensor value;
  std::string placement = "replicated";
  // Where `value` is a part: the shape of the whole, and what makes it, once, when it is written.
  std::vector<int64_t> whole_shape = {};
  std::function<at::Tensor()> make_whole = {};
  std::optional<PiecePlace> piece = {};  // where `value` is written as a piece, of its elements in their order
  // Where `value` is shape and type alone: what brings the values, and what takes them.
  std::function<at::Tensor()> fetch = {};
  std::function<void(const at::Tensor&)> store = {};

  at::Tensor fetched() const { return fetch ? fetch() : value; }
};

// Tensors that are written to <group>.safetensors, and to <group>-2.safetensors, ... beyond kMaxShardBytes.
struct CheckpointGroup {
  std::string name;  // "model" keeps the tensors' names; others prefix them: "optimizer.exp_avg.norm.weight"
  std::vector<CheckpointTensor> tensors;
};

// The group of the moving average of weights: under the parameters' names, with the number of updates.
inline constexpr const char* kAverageGroup = "ema";

inline constexpr uint64_t kMaxShardBytes = uint64_t{4} << 30;

std::string stored_name(const std::string& group, const std::string& tensor);

// Writes `folder`, which must not exist; its parent does. `index` brings everything but files and tensors. Throws CheckpointError
// with the system's reason (full disk, read-only folder) and leaves nothing behind.
void write_checkpoint(const std::filesystem::path& folder, CheckpointIndex index, const std::vector<CheckpointGroup>& groups,
                      uint64_t largest_shard_bytes = kMaxShardBytes);

// The files of one rank in a folder that exists: <group>-r<rank>.safetensors, and <group>-r<rank>-2.safetensors, ...; without a
// rank as write_checkpoint() names them. Groups without tensors have no file then. `index` gets their records. DataError.
void write_files(const std::filesystem::path& folder, CheckpointIndex& index, const std::vector<CheckpointGroup>& groups,
                 std::optional<int64_t> rank = {}, uint64_t largest_shard_bytes = kMaxShardBytes);

// An opened checkpoint whose hashes were all verified. Throws CheckpointError naming the file that is missing or damaged.
class Checkpoint {
 public:
  explicit Checkpoint(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const CheckpointIndex& index() const { return index_; }
  bool contains(const std::string& name) const { return index_.tensors.contains(name); }
  // Copies a stored tensor into `target`; CheckpointError when it is absent, or differs in shape or dtype.
  void read_into(const std::string& name, const at::Tensor& target) const;
  // A stored tensor as it is, on the CPU.
  at::Tensor read(const std::string& name) const;
  // CheckpointError lists names of a group that are stored and not wanted, or wanted and not stored.
  void check_group(const CheckpointGroup& group) const;
  // All tensors of a group, whose names are checked.
  void read_group(const CheckpointGroup& group) const;

 private:
  // Where the tensor is, in pieces or whole.
  const TensorRecord& record_of(const std::string& name) const;
  const TensorInfo& info_in(const std::string& file, const std::string& name) const;
  [[noreturn]] void missing(const std::string& name) const;
  at::Tensor from_pieces(const std::string& name, const TensorRecord& record) const;

  std::filesystem::path folder_;
  CheckpointIndex index_;
  std::map<std::string, SafetensorsFile> files_;
};

}  // namespace welkin::train
