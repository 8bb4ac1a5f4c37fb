// SPDX-License-Identifier: Apache-2.0
// One checkpoint: a folder step_N/ with safetensors files and index.json. It is written aside, synced and renamed: it is whole
// or not there.
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
  // If `value` is a part: the shape of the whole, and the function that makes it, called once, when it is written.
  std::vector<int64_t> whole_shape = {};
  std::function<at::Tensor()> make_whole = {};
  int64_t run = 0;                       // elements of its parameter's memory for each value; 0: it has the parameter's dims
  std::optional<PiecePlace> piece = {};  // if `value` is written as a piece: the place of its elements, in their order
  // If `value` has only shape and type: functions that bring the values, and take them.
  std::function<at::Tensor()> fetch = {};
  std::function<void(const at::Tensor&)> store = {};
  // If each rank has rows of it: the function that joins them, on every rank that calls it. `whole_shape` is the shape of all
  // rows; `piece` is the place of the rows, set on the rank that writes them.
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
// Returns "optimizer" for "optimizer-r1-2.safetensors".
std::string group_of_file(const std::string& file);

// Writes `folder`, whose parent exists. An older folder of its name stays until all is written, and is then replaced. `index`
// has everything but files and tensors. Throws CheckpointError with the system's reason (full disk, read-only folder) and
// leaves nothing behind.
void write_checkpoint(const std::filesystem::path& folder, CheckpointIndex index, const std::vector<CheckpointGroup>& groups,
                      uint64_t largest_shard_bytes = kMaxShardBytes);

// Writes one rank's files into an existing folder: <group>-r<rank>.safetensors, <group>-r<rank>-2.safetensors, ... Without a
// rank: names as in write_checkpoint(). Groups without tensors have no file then. Adds records to `index`. DataError.
void write_files(const std::filesystem::path& folder, CheckpointIndex& index, const std::vector<CheckpointGroup>& groups,
                 std::optional<int64_t> rank = {}, uint64_t largest_shard_bytes = kMaxShardBytes);
// The same; the caller finishes `files`.
void write_files(FilesTogether& files, const std::filesystem::path& folder, CheckpointIndex& index,
                 const std::vector<CheckpointGroup>& groups, std::optional<int64_t> rank = {},
                 uint64_t largest_shard_bytes = kMaxShardBytes);

// How much of its files is checked when a checkpoint is opened.
enum class OpeningCheck {
  Hashes,  // every byte
  Sizes,   // existence only: verify_share() verifies the hashes
  OnNode,  // the same of a node's part: files of ranks of other nodes may be absent, and are not verified
};

// "model-r1.safetensors": of one rank, where each wrote its own.
bool is_of_one_rank(const std::string& file);

// An opened checkpoint. Throws CheckpointError naming the file that is missing or damaged. A file is mapped when one of its
// tensors is asked for. Not thread-safe: one thread uses it.
class Checkpoint {
 public:
  explicit Checkpoint(std::filesystem::path folder, OpeningCheck check = OpeningCheck::Hashes);

  const std::filesystem::path& folder() const { return folder_; }
  const CheckpointIndex& index() const { return index_; }
  bool contains(const std::string& name) const { return index_.tensors.contains(name); }
  // Verifies the hashes of one of `shares` parts of the files, of about equal bytes. All parts together are all files.
  void verify_share(int64_t share, int64_t shares) const;
  // Copies a stored tensor into `target`; CheckpointError when it is absent, or differs in shape or dtype.
  void read_into(const std::string& name, const at::Tensor& target) const;
  // A stored tensor as it is, on the CPU.
  at::Tensor read(const std::string& name) const;
  // Reads (count) elements of a tensor from a place on, on the CPU; nothing else is read. CheckpointError if its shape is not
  // the place's, or its type another.
  at::Tensor read_piece(const std::string& name, const PiecePlace& place, int64_t count, at::ScalarType type) const;
  // Bytes of tensors' values read since it was opened.
  uint64_t bytes_read() const { return bytes_read_; }
  // Throws CheckpointError if names of the group are stored and not wanted, or wanted and not stored; it lists them.
  void check_group(const CheckpointGroup& group) const;
  // Reads all tensors of a group after a check of their names.
  void read_group(const CheckpointGroup& group) const;

 private:
  // The record of a tensor, which is stored in pieces or whole.
  const TensorRecord& record_of(const std::string& name) const;
  const SafetensorsFile& file_with(const std::string& file, const std::string& name) const;
  at::ScalarType type_of(const std::string& name, const TensorRecord& record) const;
  // The (count) elements that stand in a file, in its memory.
  at::Tensor stored_piece(const std::string& name, const TensorPiece& piece, at::ScalarType type, bool is_piece) const;
  [[noreturn]] void missing(const std::string& name) const;

  bool is_absent(const std::string& file) const;

  std::filesystem::path folder_;
  OpeningCheck check_;
  CheckpointIndex index_;
  mutable std::map<std::string, SafetensorsFile> files_;  // the files that were asked for
  mutable uint64_t bytes_read_ = 0;
};

}  // namespace welkin::train
