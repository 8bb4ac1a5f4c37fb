// SPDX-License-Identifier: Apache-2.0
// A file that one process writes for itself: blocks of fixed sizes, checked by hash when they are read. It has no name in its
// folder, so nothing is left of it however the process ends. Direct I/O if the file system supports it. Torch-free.
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

// Alignment of the memory to read into and write from, and of the length of blocks.
inline constexpr size_t kBlockAlignment = 4096;

constexpr size_t aligned_size(size_t bytes) { return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment; }

class SpillFile {
 public:
  // `holds` names the content, for messages. Makes the folder. DataError if no file can be made there.
  SpillFile(std::filesystem::path folder, std::string holds);

  // Allocates disk space for one more block, which reads as zeros until it is written. DataError, with the free space, if there
  // is none: this is known before anything is computed.
  size_t add(size_t bytes);

  size_t num_blocks() const;
  size_t bytes_of(size_t block) const { return block_at(block).bytes; }
  size_t bytes() const { return end_; }
  bool is_direct() const { return is_direct_; }
  const std::filesystem::path& folder() const { return folder_; }

  // Transfers a block's first bytes from or to memory aligned to kBlockAlignment; a read takes as many as were written.
  // Different blocks may be read, written and added at the same time. DataError names file and block with the system's reason,
  // or reports a hash that differs from that of the written bytes.
  void write(size_t block, std::span<const std::byte> bytes);
  void read(size_t block, std::span<std::byte> bytes) const;

 private:
  struct Block {
    size_t offset = 0, bytes = 0;
    size_t written = 0;
    uint64_t hash = 0;  // of the written bytes
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
  mutable std::mutex mutex_;  // guards the list of blocks, not their bytes
  std::vector<Block> blocks_;
};

}  // namespace welkin::train
