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
#include "core/files_together.h"
#include "train/checkpoint/format/checkpoint_index.h"

namespace welkin::train {

struct CheckpointTensor {
  std::string name;
  at::Tensor value;
  std::string placement = "replicated";
  // Where `value` is a part: the shape of the whole, and what makes it, once, when it is written.
  std::vector<int64_t> whole_shape = {};
  std::function<at::Tensor()> make_whole = {};
  int64_t run = 0;                       // elements of its parameter's memory for each value; 0: it has the parameter's dims
  std::optional<PiecePlace> piece = {};  // where `value` is written as a piece, of its elements in their order
  // Where `value` is shape and type alone: what brings the values, and what takes them.
  std::function<at::Tensor()> fetch = {};
  std::function<void(const at::Tensor&)> store = {};
  // Where each rank has rows of it: what puts them together, on every rank that calls it. `whole_shape` is that of all, `piece`
  // where the rows stand, on the rank that writes them.
  std::function<at::Tensor()> join_rows = {};

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
// "optimizer" of "optimizer-r1-2.safetensors".
std::string group_of_file(const std::string& file);

// Writes `folder`, whose parent exists. What stands under its name stays until all is written, and then gives way. `index` brings
// everything but files and tensors. Throws CheckpointError with the system's reason (full disk, read-only folder) and leaves
// nothing behind.
void write_checkpoint(const std::filesystem::path& folder, CheckpointIndex index, const std::vector<CheckpointGroup>& groups,
                      uint64_t largest_shard_bytes = kMaxShardBytes);

// The files of one rank in a folder that exists: <group>-r<rank>.safetensors, and <group>-r<rank>-2.safetensors, ...; without a
// rank as write_checkpoint() names them. Groups without tensors have no file then. `index` gets their records. DataError.
void write_files(const std::filesystem::path& folder, CheckpointIndex& index, const std::vector<CheckpointGroup>& groups,
                 std::optional<int64_t> rank = {}, uint64_t largest_shard_bytes = kMaxShardBytes);
// The same, to be finished with `files`.
void write_files(FilesTogether& files, const std::filesystem::path& folder, CheckpointIndex& index,
                 const std::vector<CheckpointGroup>& groups, std::optional<int64_t> rank = {},
                 uint64_t largest_shard_bytes = kMaxShardBytes);

// How much of its files is looked at when a checkpoint is opened.
enum class OpeningCheck {
  Hashes,  // every byte
  Sizes,   // that they are there: the hashes are verified by verify_share()
};

// An opened checkpoint. Throws CheckpointError naming the file that is missing or damaged. Files are mapped when a tensor of
// theirs is asked for. Of one thread.
class Checkpoint {
 public:
  explicit Checkpoint(std::filesystem::path folder, OpeningCheck check = OpeningCheck::Hashes);

  const std::filesystem::path& folder() const { return folder_; }
  const CheckpointIndex& index() const { return index_; }
  bool contains(const std::string& name) const { return index_.tensors.contains(name); }
  // The hashes of some of the files: of about as many bytes as any other of the `shares`, which together are all.
  void verify_share(int64_t share, int64_t shares) const;
  // Copies a stored tensor into `target`; CheckpointError when it is absent, or differs in shape or dtype.
  void read_into(const std::string& name, const at::Tensor& target) const;
  // A stored tensor as it is, on the CPU.
  at::Tensor read(const std::string& name) const;
  // (count) elements of it from a place on, on the CPU; nothing else is read. CheckpointError where its shape is not the place's,
  // or its type another.
  at::Tensor read_piece(const std::string& name, const PiecePlace& place, int64_t count, at::ScalarType type) const;
  // Of tensors' values, since it was opened.
  uint64_t bytes_read() const { return bytes_read_; }
  // CheckpointError lists names of a group that are stored and not wanted, or wanted and not stored.
  void check_group(const CheckpointGroup& group) const;
  // All tensors of a group, whose names are checked.
  void read_group(const CheckpointGroup& group) const;

 private:
  // Where the tensor is, in pieces or whole.
  const TensorRecord& record_of(const std::string& name) const;
  const SafetensorsFile& file_with(const std::string& file, const std::string& name) const;
  at::ScalarType type_of(const std::string& name, const TensorRecord& record) const;
  // The elements that stand in a file, (count), in its memory.
  at::Tensor stored_piece(const std::string& name, const TensorPiece& piece, at::ScalarType type, bool is_piece) const;
  [[noreturn]] void missing(const std::string& name) const;

  std::filesystem::path folder_;
  CheckpointIndex index_;
  mutable std::map<std::string, SafetensorsFile> files_;  // as far as they were asked for
  mutable uint64_t bytes_read_ = 0;
};

}  // namespace welkin::train
