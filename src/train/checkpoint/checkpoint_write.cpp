// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/stored_tensor.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

// The folder in which a checkpoint grows; removed unless it was moved away.
class AsideFolder {
 public:
  explicit AsideFolder(const fs::path& target)
      : path_(target.parent_path() / cat(".", target.filename().string(), ".partial.", getpid())) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    make_folders(path_);
  }
  ~AsideFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  AsideFolder(const AsideFolder&) = delete;
  AsideFolder& operator=(const AsideFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string shard_name(const std::string& group, int number) {
  return number == 1 ? cat(group, ".safetensors") : cat(group, "-", number, ".safetensors");
}

std::vector<int64_t> shape_of_whole(const CheckpointTensor& tensor) {
  return tensor.make_whole ? tensor.whole_shape : tensor.value.sizes().vec();
}

uint64_t bytes_of_whole(const CheckpointTensor& tensor) {
  auto bytes = static_cast<uint64_t>(tensor.value.element_size());
  for (const int64_t extent : shape_of_whole(tensor)) bytes *= static_cast<uint64_t>(extent);
  return bytes;
}

// Collects tensors into files of at most the given size.
class ShardedGroup {
 public:
  ShardedGroup(const CheckpointGroup& group, const fs::path& folder, CheckpointIndex& index, uint64_t largest_bytes)
      : group_(group), folder_(folder), index_(index), largest_bytes_(largest_bytes) {}

  void write() {
    for (const CheckpointTensor& tensor : group_.tensors) {
      if (bytes_ != 0 && bytes_ + bytes_of_whole(tensor) > largest_bytes_) flush();
      add(tensor);
    }
    flush();
  }

 private:
  void add(const CheckpointTensor& tensor) {
    const std::string name = stored_name(group_.name, tensor.name);
    const Dtype dtype = stored_dtype(tensor.value.scalar_type());
    const auto shape = shape_of_whole(tensor);
    writer_.add(name, dtype, shape, [value = tensor.value, make = tensor.make_whole](const SafetensorsWriter::Emit& emit) {
      const at::Tensor row_major = row_major_on_cpu(make ? make() : value);
      emit(bytes_of(row_major));
    });
    index_.tensors[name] = {.file = shard_name(group_.name, number_),
                            .dtype = std::string(dtype_name(dtype)),
                            .shape = shape,
                            .offset = std::vector<int64_t>(shape.size(), 0),
                            .placement = tensor.placement};
    bytes_ += bytes_of_whole(tensor);
  }

  void flush() {
    const fs::path path = folder_ / shard_name(group_.name, number_);
    const uint64_t hash = writer_.write(path);
    index_.files[path.filename().string()] = {.bytes = fs::file_size(path), .xxh3 = hash};
    writer_ = SafetensorsWriter();
    bytes_ = 0;
    ++number_;
  }

  const CheckpointGroup& group_;
  const fs::path& folder_;
  CheckpointIndex& index_;
  uint64_t largest_bytes_;
  SafetensorsWriter writer_;
  uint64_t bytes_ = 0;
  int number_ = 1;
};

}  // namespace

std::string stored_name(const std::string& group, const std::string& tensor) {
  return group == "model" ? tensor : cat(group, ".", tensor);
}

void write_checkpoint(const fs::path& folder, CheckpointIndex index, const std::vector<CheckpointGroup>& groups,
                      uint64_t largest_shard_bytes) {
  try {
    const AsideFolder aside(folder);
    for (const CheckpointGroup& group : groups) ShardedGroup(group, aside.path(), index, largest_shard_bytes).write();
    write_file_atomically(aside.path() / "index.json", to_json(index));
    publish_folder(aside.path(), folder);
  } catch (const DataError& error) {
    throw CheckpointError(
        "checkpoint",
        cat("cannot be saved: path=", folder.string(), ", step=", index.position.iteration, ", reason=", error.what()),
        "Free space or choose another expdir, then continue with --resume; earlier checkpoints are untouched");
  }
}

}  // namespace welkin::train
