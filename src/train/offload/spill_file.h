// SPDX-License-Identifier: Apache-2.0
// A file that one process writes for itself alone: blocks of fixed sizes, checked by hash when they are read. It has no name in
// its folder, so that nothing is left of it however the process ends. Direct I/O where the file system takes it. Torch-free.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/file_descriptor.h"

namespace welkin::train {

// Of the memory that is read into and written from, and of the length of blocks.
inline constexpr size_t kBlockAlignment = 4096;

constexpr size_t aligned_size(size_t bytes) { return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment; }

class SpillFile {
 public:
  // `holds`: what is in it, for messages. The folder is made. DataError where no file can be made there.
  SpillFile(std::filesystem::path folder, std::string holds);

  // Takes room on the disk for one more block, which reads as zeros until it is written. DataError, with what is free, when there
  // is none: nothing is computed before that is known.
  size_t add(size_t bytes);

  size_t num_blocks() const;
  size_t bytes_of(size_t block) const { return block_at(block).bytes; }
  size_t bytes() const { return end_; }
  bool is_direct() const { return is_direct_; }
  const std::filesystem::path& folder() const { return folder_; }

  // From or to memory of kBlockAlignment: a block's first bytes, which are read as they were written. Different blocks may be
  // read, written and added at the same time. DataError names file and block: the system's reason, or a hash that is not that of
  // what was written.
  void write(size_t block, std::span<const std::byte> bytes);
  void read(size_t block, std::span<std::byte> bytes) const;

 private:
  struct Block {
    size_t offset = 0, bytes = 0;
    size_t written = 0;
    uint64_t hash = 0;  // of what was written
  };

  Block block_at(size_t block) const;
  std::string described(size_t block) const;
  template <typename Transfer>
  int moved(size_t bytes, const Transfer& transfer) const;
  void make_room(size_t offset, size_t bytes);
  [[noreturn]] void no_room(size_t bytes, int error_number) const;

  std::filesystem::path folder_;
  std::string holds_;
  FileDescriptor file_;
  bool is_direct_ = false;
  std::atomic<size_t> end_ = 0;
  mutable std::mutex mutex_;  // of the list of blocks, not of their bytes
  std::vector<Block> blocks_;
};

}  // namespace welkin::train
