// SPDX-License-Identifier: Apache-2.0
// Zip files for PyTorch: stored entries, each at a multiple of 64 bytes so that it can be used in place from a mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/file_descriptor.h"

namespace welkin::archive {

class ZipWriter {
 public:
  using Emit = std::function<void(std::span<const std::byte>)>;
  using Producer = std::function<void(const Emit&)>;
  static constexpr uint64_t kAlignment = 64;

  // Writes to `file` from its beginning; `path` is for messages. `always_zip64` is for tests: such fields belong to files above
  // 4 GiB.
  ZipWriter(const FileDescriptor& file, std::filesystem::path path, bool always_zip64 = false)
      : file_(file), path_(std::move(path)), always_zip64_(always_zip64) {}

  // `produce` emits exactly `num_bytes` in any number of pieces. Throws DataError on a full disk and the like.
  void add(const std::string& name, uint64_t num_bytes, const Producer& produce);
  void add(const std::string& name, std::span<const std::byte> bytes);
  // Writes the directory. Nothing may be added afterwards.
  void finish();

 private:
  struct Row {
    std::string name;
    uint64_t size, local;
    uint32_t crc;
  };
  bool in_64(uint64_t value) const;
  void write(std::string_view bytes);
  void write_local(const Row& row);
  void patch_crc(const Row& row) const;
  void write_central(const Row& row);

  const FileDescriptor& file_;
  std::filesystem::path path_;
  bool always_zip64_;
  uint64_t position_ = 0;
  std::vector<Row> rows_;
};

}  // namespace welkin::archive
