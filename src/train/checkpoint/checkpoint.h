// SPDX-License-Identifier: Apache-2.0
// One checkpoint: a folder step_N/ with safetensors files and index.json. Written aside, synced, renamed: it is whole or not
// there.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/archive/safetensors.h"
#include "train/checkpoint/checkpoint_index.h"

namespace welkin::train {

struct CheckpointTensor {
  std::string name;
  at::Tensor value;
  std::string placement = "replicated";
  // Where `value` is a part: the shape of the whole, and what makes it, once, when it is written.
  std::vector<int64_t> whole_shape = {};
  std::function<at::Tensor()> make_whole = {};
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
  std::span<const std::byte> bytes_at(const std::string& name) const;

  std::filesystem::path folder_;
  CheckpointIndex index_;
  std::map<std::string, SafetensorsFile> files_;
};

}  // namespace welkin::train
