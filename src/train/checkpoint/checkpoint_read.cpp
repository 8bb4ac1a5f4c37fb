// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <set>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/stored_tensor.h"
#include "train/checkpoint/tensor_pieces.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestIndexBytes = uint64_t{256} << 20;
constexpr const char* kUseAnother = "Use another checkpoint of the run; a resume takes the newest good one by itself";

void check_pieces(const CheckpointIndex& index, const fs::path& path) {
  for (const auto& [name, record] : index.tensors) {
    const std::string problem = record.pieces.empty() ? std::string() : problem_of_pieces(record);
    if (problem.empty()) continue;
    throw CheckpointError("checkpoint",
                          cat("the pieces of a tensor do not fit: path=", path.string(), ", tensor=", name, ", reason=", problem),
                          kUseAnother);
  }
}

CheckpointIndex load_index(const fs::path& folder) {
  const fs::path path = folder / "index.json";
  try {
    CheckpointIndex index = parse_checkpoint_index(read_file(path, kLargestIndexBytes), path.string());
    check_pieces(index, path);
    return index;
  } catch (const DataError& error) {
    throw CheckpointError("checkpoint", cat("is not readable: path=", folder.string(), ", reason=", error.what()), kUseAnother);
  }
}

void verify_file(const fs::path& path, const StoredFile& file) {
  std::error_code missing;
  const uint64_t bytes = fs::file_size(path, missing);
  if (missing) throw CheckpointError("checkpoint", cat("a file is missing: path=", path.string()), kUseAnother);
  if (bytes != file.bytes) {
    throw CheckpointError("checkpoint",
                          cat("a file has the wrong size: path=", path.string(), ", bytes=", bytes, ", expected=", file.bytes),
                          kUseAnother);
  }
  if (const uint64_t hash = xxh3_64_of_file(path); hash != file.xxh3) {
    throw CheckpointError(
        "checkpoint",
        cat("a file is damaged: path=", path.string(), ", xxh3=", hex_digits(hash), ", expected=", hex_digits(file.xxh3)),
        kUseAnother);
  }
}

std::string text_of(const std::vector<int64_t>& shape) { return cat("(", join(shape, ","), ")"); }

// At most three of them, for messages.
std::string some_of(const std::set<std::string>& names) {
  std::vector<std::string> first(names.begin(),
                                 std::next(names.begin(), static_cast<std::ptrdiff_t>(std::min<size_t>(3, names.size()))));
  return cat(join(first, " "), names.size() > 3 ? " ..." : "");
}

}  // namespace

Checkpoint::Checkpoint(fs::path folder) : folder_(std::move(folder)), index_(load_index(folder_)) {
  for (const auto& [name, file] : index_.files) {
    verify_file(folder_ / name, file);
    try {
      files_.emplace(name, SafetensorsFile(folder_ / name));
    } catch (const DataError& error) {
      throw CheckpointError("checkpoint", error.what(), kUseAnother);
    }
  }
}

void Checkpoint::missing(const std::string& name) const {
  throw CheckpointError("checkpoint", cat("a tensor is missing: path=", folder_.string(), ", tensor=", name),
                        "Load it with the model and optimizer that it was saved with");
}

const TensorRecord& Checkpoint::record_of(const std::string& name) const {
  const auto record = index_.tensors.find(name);
  if (record == index_.tensors.end()) missing(name);
  return record->second;
}

const TensorInfo& Checkpoint::info_in(const std::string& file, const std::string& name) const {
  const SafetensorsFile& stored = files_.at(file);
  if (!stored.contains(name)) missing(name);
  return stored.info(name);
}

// The index was read with its pieces checked against each other; here they are checked against their files.
at::Tensor Checkpoint::from_pieces(const std::string& name, const TensorRecord& record) const {
  const Dtype dtype = info_in(record.file, name).dtype;
  for (const TensorPiece& piece : record.pieces) {
    const TensorInfo& info = info_in(piece.file, name);
    if (info.dtype == dtype && info.shape == std::vector<int64_t>{piece.count}) continue;
    throw CheckpointError(
        "checkpoint",
        cat("a piece does not fit: path=", (folder_ / piece.file).string(), ", tensor=", name, ", stored=", text_of(info.shape),
            " ", dtype_name(info.dtype), ", wanted=(", piece.count, ") ", dtype_name(dtype)),
        kUseAnother);
  }
  return whole_of_pieces(record, tensor_dtype(dtype), [&](const TensorPiece& piece, const at::Tensor& target) {
    copy_bytes_into(files_.at(piece.file).bytes(name), target);
  });
}

void Checkpoint::read_into(const std::string& name, const at::Tensor& target) const {
  const TensorRecord& record = record_of(name);
  const TensorInfo& info = info_in(record.file, name);
  const std::vector<int64_t>& shape = record.pieces.empty() ? info.shape : record.shape;
  if (shape != target.sizes().vec() || info.dtype != stored_dtype(target.scalar_type())) {
    throw CheckpointError("checkpoint",
                          cat("a tensor does not fit: path=", folder_.string(), ", tensor=", name, ", stored=", text_of(shape),
                              " ", dtype_name(info.dtype), ", wanted=", text_of(target.sizes().vec()), " ",
                              dtype_name(stored_dtype(target.scalar_type()))),
                          "Load it with the configuration that it was saved with (config in its index.json)");
  }
  if (record.pieces.empty()) return copy_bytes_into(files_.at(record.file).bytes(name), target);
  const at::NoGradGuard no_grad;
  target.copy_(from_pieces(name, record));
}

at::Tensor Checkpoint::read(const std::string& name) const {
  const TensorRecord& record = record_of(name);
  if (!record.pieces.empty()) return from_pieces(name, record);
  const TensorInfo& info = info_in(record.file, name);
  at::Tensor value = at::empty(info.shape, at::TensorOptions(tensor_dtype(info.dtype)));
  copy_bytes_into(files_.at(record.file).bytes(name), value);
  return value;
}

void Checkpoint::check_group(const CheckpointGroup& group) const {
  std::set<std::string> surplus, lacking;
  for (const auto& [name, record] : index_.tensors) {
    if (record.file == group.name + ".safetensors" || record.file.starts_with(group.name + "-")) surplus.insert(name);
  }
  for (const CheckpointTensor& tensor : group.tensors) {
    const std::string name = stored_name(group.name, tensor.name);
    if (surplus.erase(name) == 0) lacking.insert(name);
  }
  if (!surplus.empty() || !lacking.empty()) {
    throw CheckpointError("checkpoint",
                          cat("its tensors are not those of the run: path=", folder_.string(), ", group=", group.name,
                              ", not stored=", lacking.size(), " (", some_of(lacking), "), not wanted=", surplus.size(), " (",
                              some_of(surplus), ")"),
                          "Resume with the model and optimizer that it was saved with");
  }
}

void Checkpoint::read_group(const CheckpointGroup& group) const {
  check_group(group);
  for (const CheckpointTensor& tensor : group.tensors) read_into(stored_name(group.name, tensor.name), tensor.value);
}

}  // namespace welkin::train
