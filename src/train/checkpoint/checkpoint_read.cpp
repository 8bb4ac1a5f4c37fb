// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/format/stored_tensor.h"
#include "train/checkpoint/format/tensor_boxes.h"
#include "train/checkpoint/format/tensor_pieces.h"

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

void verify_size(const fs::path& path, const StoredFile& file) {
  std::error_code missing;
  const uint64_t bytes = fs::file_size(path, missing);
  if (missing) throw CheckpointError("checkpoint", cat("a file is missing: path=", path.string()), kUseAnother);
  if (bytes == file.bytes) return;
  throw CheckpointError("checkpoint",
                        cat("a file has the wrong size: path=", path.string(), ", bytes=", bytes, ", expected=", file.bytes),
                        kUseAnother);
}

void verify_hash(const fs::path& path, const StoredFile& file) {
  try {
    const uint64_t hash = xxh3_64_of_file(path);
    if (hash == file.xxh3) return;
    throw CheckpointError(
        "checkpoint",
        cat("a file is damaged: path=", path.string(), ", xxh3=", hex_digits(hash), ", expected=", hex_digits(file.xxh3)),
        kUseAnother);
  } catch (const DataError& error) {
    throw CheckpointError("checkpoint", error.what(), kUseAnother);
  }
}

std::vector<int64_t> in_order(size_t dims) {
  std::vector<int64_t> order(dims);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::string text_of(const std::vector<int64_t>& shape) { return cat("(", join(shape, ","), ")"); }

// At most three of the names, for messages.
std::string some_of(const std::set<std::string>& names) {
  std::vector<std::string> first(names.begin(),
                                 std::next(names.begin(), static_cast<std::ptrdiff_t>(std::min<size_t>(3, names.size()))));
  return cat(join(first, " "), names.size() > 3 ? " ..." : "");
}

}  // namespace

bool is_of_one_rank(const std::string& file) {
  const size_t at = file.rfind("-r");
  return at != std::string::npos && at + 2 < file.size() && file[at + 2] >= '0' && file[at + 2] <= '9';
}

Checkpoint::Checkpoint(fs::path folder, OpeningCheck check)
    : folder_(std::move(folder)), check_(check), index_(load_index(folder_)) {
  for (const auto& [name, file] : index_.files) {
    if (!is_absent(name)) verify_size(folder_ / name, file);
  }
  if (check == OpeningCheck::Hashes) verify_share(0, 1);
}

bool Checkpoint::is_absent(const std::string& file) const {
  return check_ == OpeningCheck::OnNode && is_of_one_rank(file) && !is_there(folder_ / file);
}

// Assigns the largest files first, each to the share that has least, so that all ranks compute the same shares.
void Checkpoint::verify_share(int64_t share, int64_t shares) const {
  std::vector<std::pair<uint64_t, std::string>> files;
  for (const auto& [name, file] : index_.files) files.emplace_back(file.bytes, name);
  std::ranges::sort(files, std::greater());
  std::vector<uint64_t> load(static_cast<size_t>(shares), 0);
  for (const auto& [bytes, name] : files) {
    const auto least = std::ranges::min_element(load);
    *least += bytes;
    if (least - load.begin() == share && !is_absent(name)) verify_hash(folder_ / name, index_.files.at(name));
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

const SafetensorsFile& Checkpoint::file_with(const std::string& file, const std::string& name) const {
  auto known = files_.find(file);
  try {
    if (known == files_.end()) known = files_.emplace(file, SafetensorsFile(folder_ / file)).first;
  } catch (const DataError& error) {
    throw CheckpointError("checkpoint", error.what(), kUseAnother);
  }
  if (!known->second.contains(name)) missing(name);
  return known->second;
}

at::ScalarType Checkpoint::type_of(const std::string& name, const TensorRecord& record) const {
  return tensor_dtype(file_with(record.file, name).info(name).dtype);
}

// The pieces were checked against each other when the index was read; here each is checked against its file.
at::Tensor Checkpoint::stored_piece(const std::string& name, const TensorPiece& piece, at::ScalarType type, bool is_piece) const {
  const SafetensorsFile& file = file_with(piece.file, name);
  const TensorInfo& info = file.info(name);
  if (info.dtype != stored_dtype(type) || (is_piece && info.shape != std::vector<int64_t>{piece.count})) {
    throw CheckpointError(
        "checkpoint",
        cat("a piece does not fit: path=", (folder_ / piece.file).string(), ", tensor=", name, ", stored=", text_of(info.shape),
            " ", dtype_name(info.dtype), ", wanted=(", piece.count, ") ", dtype_name(stored_dtype(type))),
        kUseAnother);
  }
  return elements_in(file.bytes(name), type);
}

at::Tensor Checkpoint::read_piece(const std::string& name, const PiecePlace& place, int64_t count, at::ScalarType type) const {
  const TensorRecord& record = record_of(name);
  const bool is_whole = record.pieces.empty();
  const TensorInfo& info = file_with(record.file, name).info(name);
  const std::vector<int64_t>& shape = is_whole ? info.shape : record.shape;
  if (shape != place.whole_shape || info.dtype != stored_dtype(type)) {
    throw CheckpointError(
        "checkpoint",
        cat("a tensor does not fit: path=", folder_.string(), ", tensor=", name, ", stored=", text_of(shape), " ",
            dtype_name(info.dtype), ", wanted=", text_of(place.whole_shape), " ", dtype_name(stored_dtype(type))),
        "Load it with the configuration that it was saved with (config in its index.json)");
  }
  const at::NoGradGuard no_grad;
  at::Tensor values = at::empty({count}, at::TensorOptions(type));
  const std::vector<PieceBox> wanted = boxes_of_piece(place, count);
  const std::vector<TensorPiece> pieces =
      is_whole ? std::vector<TensorPiece>{{.file = record.file, .count = c10::multiply_integers(shape)}} : record.pieces;
  const PieceLayout layout = is_whole ? PieceLayout{.order = in_order(shape.size())} : record.layout;
  for (const TensorPiece& piece : pieces) {
    at::Tensor stored;
    for (const PieceBox& from :
         boxes_of_piece({.whole_shape = shape, .layout = layout, .part = piece.part, .begin = piece.begin}, piece.count)) {
      for (const PieceBox& to : wanted) {
        if (!have_common(from, to)) continue;
        if (!stored.defined()) stored = stored_piece(name, piece, type, !is_whole);
        bytes_read_ += static_cast<uint64_t>(copy_common(from, stored, to, values)) * c10::elementSize(type);
      }
    }
  }
  return values;
}

void Checkpoint::read_into(const std::string& name, const at::Tensor& target) const {
  const at::NoGradGuard no_grad;
  const std::vector<int64_t> shape = target.sizes().vec();
  const PiecePlace whole{.whole_shape = shape, .layout = {.order = in_order(shape.size())}};
  target.detach().copy_(read_piece(name, whole, target.numel(), target.scalar_type()).view(shape));
}

at::Tensor Checkpoint::read(const std::string& name) const {
  const TensorRecord& record = record_of(name);
  const std::vector<int64_t> shape = record.pieces.empty() ? file_with(record.file, name).info(name).shape : record.shape;
  const PiecePlace whole{.whole_shape = shape, .layout = {.order = in_order(shape.size())}};
  return read_piece(name, whole, c10::multiply_integers(shape), type_of(name, record)).view(shape);
}

void Checkpoint::check_group(const CheckpointGroup& group) const {
  std::set<std::string> surplus, lacking;
  for (const auto& [name, record] : index_.tensors) {
    if (group_of_file(record.file) == group.name) surplus.insert(name);
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
                          group.name == "optimizer"
                              ? "Resume with the optimizer that it was saved with, or say --resume_optimizer fitting (keeps the "
                                "states that fit) or none"
                              : "Resume with the model and optimizer that it was saved with");
  }
}

void Checkpoint::read_group(const CheckpointGroup& group) const {
  check_group(group);
  for (const CheckpointTensor& tensor : group.tensors) read_into(stored_name(group.name, tensor.name), tensor.value);
}

}  // namespace welkin::train
