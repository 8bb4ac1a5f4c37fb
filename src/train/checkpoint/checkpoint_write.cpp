// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "train/checkpoint/aside_folder.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/format/stored_tensor.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

std::string shard_name(const std::string& group, std::optional<int64_t> rank, int number) {
  const std::string owner = rank ? cat("-r", *rank) : std::string();
  return cat(group, owner, number == 1 ? std::string() : cat("-", number), ".safetensors");
}

std::vector<int64_t> stored_shape(const CheckpointTensor& tensor) {
  if (tensor.piece) return {tensor.value.numel()};
  return tensor.make_whole ? tensor.whole_shape : tensor.value.sizes().vec();
}

uint64_t stored_bytes(const CheckpointTensor& tensor) {
  auto bytes = static_cast<uint64_t>(tensor.value.element_size());
  for (const int64_t extent : stored_shape(tensor)) bytes *= static_cast<uint64_t>(extent);
  return bytes;
}

// Collects tensors into files of at most the given size.
class ShardedGroup {
 public:
  ShardedGroup(const CheckpointGroup& group, FilesTogether& files, const fs::path& folder, CheckpointIndex& index,
               std::optional<int64_t> rank, uint64_t largest_bytes)
      : group_(group), files_(files), folder_(folder), index_(index), rank_(rank), largest_bytes_(largest_bytes) {}

  void write() {
    for (const CheckpointTensor& tensor : group_.tensors) {
      if (bytes_ != 0 && bytes_ + stored_bytes(tensor) > largest_bytes_) flush();
      add(tensor);
    }
    flush();
  }

 private:
  void add(const CheckpointTensor& tensor) {
    const std::string name = stored_name(group_.name, tensor.name);
    const Dtype dtype = stored_dtype(tensor.value.scalar_type());
    const auto shape = stored_shape(tensor);
    writer_.add(name, dtype, shape, [&tensor](const SafetensorsWriter::Emit& emit) {
      const at::Tensor row_major = row_major_on_cpu(tensor.make_whole ? tensor.make_whole() : tensor.fetched());
      emit(bytes_of(row_major));
    });
    TensorRecord& record = index_.tensors[name];
    record = {.file = shard_name(group_.name, rank_, number_),
              .dtype = std::string(dtype_name(dtype)),
              .shape = tensor.piece ? tensor.piece->whole_shape : shape,
              .offset = {},
              .placement = tensor.placement};
    record.offset.assign(record.shape.size(), 0);
    if (tensor.piece) {
      record.layout = tensor.piece->layout;
      record.pieces = {{record.file, tensor.piece->part, tensor.piece->begin, tensor.value.numel()}};
    }
    bytes_ += stored_bytes(tensor);
  }

  void flush() {
    const fs::path path = folder_ / shard_name(group_.name, rank_, number_);
    const uint64_t hash = writer_.write(path, files_);
    index_.files[path.filename().string()] = {.bytes = writer_.written_bytes(), .xxh3 = hash};
    writer_ = SafetensorsWriter();
    bytes_ = 0;
    ++number_;
  }

  const CheckpointGroup& group_;
  FilesTogether& files_;
  const fs::path& folder_;
  CheckpointIndex& index_;
  std::optional<int64_t> rank_;
  uint64_t largest_bytes_;
  SafetensorsWriter writer_;
  uint64_t bytes_ = 0;
  int number_ = 1;
};

}  // namespace

std::string stored_name(const std::string& group, const std::string& tensor) {
  return group == "model" ? tensor : cat(group, ".", tensor);
}

std::string group_of_file(const std::string& file) { return file.substr(0, file.find_first_of("-.")); }

void write_files(const fs::path& folder, CheckpointIndex& index, const std::vector<CheckpointGroup>& groups,
                 std::optional<int64_t> rank, uint64_t largest_shard_bytes) {
  FilesTogether files;
  write_files(files, folder, index, groups, rank, largest_shard_bytes);
  files.finish();
}

void write_files(FilesTogether& files, const fs::path& folder, CheckpointIndex& index, const std::vector<CheckpointGroup>& groups,
                 std::optional<int64_t> rank, uint64_t largest_shard_bytes) {
  for (const CheckpointGroup& group : groups) {
    if (!rank || !group.tensors.empty()) ShardedGroup(group, files, folder, index, rank, largest_shard_bytes).write();
  }
}

void write_checkpoint(const fs::path& folder, CheckpointIndex index, const std::vector<CheckpointGroup>& groups,
                      uint64_t largest_shard_bytes) {
  try {
    const AsideFolder aside(folder);
    write_files(aside.path(), index, groups, {}, largest_shard_bytes);
    write_file_atomically(aside.path() / "index.json", to_json(index));
    publish_over(aside.path(), folder);
  } catch (const DataError& error) {
    throw cannot_be_saved(folder, index.position.iteration, error.what());
  }
}

}  // namespace welkin::train
