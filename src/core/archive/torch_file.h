// SPDX-License-Identifier: Apache-2.0
// A file of torch.save: the zip of PyTorch 1.6 and later, or the legacy stream of pickles before. Mapped; tensors are read one by
// one. Executes nothing of the file (pickle_reader.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/archive/pickle_value.h"
#include "core/archive/zip_reader.h"
#include "core/file.h"

namespace welkin::archive {

// The content of such a file's bytes, which outlive it. Throws DataError naming `source`.
class TorchContent {
 public:
  TorchContent(std::span<const std::byte> file, std::string source);

  static bool recognises(std::span<const std::byte> file);

  const Pickle& pickle() const { return pickle_; }
  bool is_legacy() const { return !zip_; }
  // Values of a Tensor in row-major order. Reading a storage for the first time verifies its checksum, where it has one. A tensor
  // that repeats few stored bytes many times is refused: it would fill the memory.
  std::vector<std::byte> row_major(const PickleNode& tensor) const;
  static uint64_t bytes_of(const PickleNode& tensor);

 private:
  void open_zip();
  void open_legacy();
  void check_legacy_header(std::vector<Pickle>& heads) const;
  void find_legacy_storages(const Pickle& keys, uint64_t position);
  std::span<const std::byte> storage(const PickleNode& node) const;
  void check_storages() const;

  std::span<const std::byte> file_;
  std::string source_;
  std::optional<ZipReader> zip_;
  std::string root_;  // the archive's folder, with a slash
  Pickle pickle_;
  std::map<std::string, std::span<const std::byte>, std::less<>> legacy_;
  mutable std::map<std::string, bool, std::less<>> verified_;
};

class TorchFile {
 public:
  explicit TorchFile(const std::filesystem::path& path)
      : file_(std::make_unique<MappedFile>(path)), content_(file_->bytes(), path.string()) {}

  const TorchContent& content() const { return content_; }

 private:
  std::unique_ptr<MappedFile> file_;
  TorchContent content_;
};

}  // namespace welkin::archive
