// SPDX-License-Identifier: Apache-2.0
// The blocks of a file, through three buffers: while one is in use, the next is read and the one before is written back. The
// first blocks of the next pass are read after a pass, beside other computation. Torch-free.
#pragma once

#include <array>
#include <deque>
#include <exception>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "core/process/thread_pool.h"
#include "train/offload/block_store.h"
#include "train/offload/spill_file.h"

namespace welkin::train {

class FileBlocks : public BlockStore {
 public:
  static constexpr size_t kBuffers = 3;

  FileBlocks(std::filesystem::path folder, std::string holds, HostMemory memory);
  ~FileBlocks() override;
  FileBlocks(const FileBlocks&) = delete;
  FileBlocks& operator=(const FileBlocks&) = delete;

  size_t add(std::span<const std::byte> content) override;
  void begin() override;
  void pass(const BlockBody& body) override;
  void visit(size_t block, bool changes, const BlockBody& body) override;
  bool is_file() const override { return true; }
  size_t bytes() const override { return file_.bytes(); }
  size_t memory_bytes() const override { return kBuffers * buffer_bytes_; }
  std::string place() const override;

 private:
  using Done = std::shared_future<void>;
  struct Reading {
    size_t block, buffer;
    Done done;
  };

  std::span<std::byte> memory_of(size_t block, size_t buffer) const { return buffers_[buffer].first(file_.bytes_of(block)); }
  Done start(std::function<void()> work);
  void start_read(size_t block);
  void start_write(size_t block, size_t buffer);
  void go_through(const BlockBody& body);
  void look_at(size_t block, bool changes, const BlockBody& body);
  void settle();
  void let_go();
  void wait_for_all() const noexcept;
  template <typename Work>
  void guarded(const Work& work);

  SpillFile file_;
  HostMemory memory_;
  size_t buffer_bytes_ = 0;
  std::array<std::span<std::byte>, kBuffers> buffers_{};
  size_t next_buffer_ = 0;
  std::deque<Reading> reading_;        // in the order of blocks
  std::array<Done, kBuffers> busy_{};  // the latest transfer of each buffer
  std::vector<Done> writing_;          // by block
  std::optional<size_t> held_;         // the block in the first buffer, for visit()
  bool held_is_changed_ = false;
  std::exception_ptr failure_;  // of a pass that failed: the file holds no valid state of a run any more
  ThreadPool threads_;          // last: its threads use all of the above
};

}  // namespace welkin::train
