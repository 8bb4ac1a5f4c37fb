// SPDX-License-Identifier: Apache-2.0
// Blocks of bytes that a pass visits one after the other, wherever they are kept between passes. Torch-free.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace welkin::train {

// `span` is the block's memory during the call, aligned to a page.
using BlockBody = std::function<void(size_t block, std::span<std::byte> memory)>;

class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // Adds a block with this content, which is aligned to a page. All blocks are added before the first pass.
  virtual size_t add(std::span<const std::byte> content) = 0;
  // Called after the last add().
  virtual void begin() = 0;

  // Calls body(block, memory) for every block in order and keeps its changes. If it throws, nothing more is done.
  virtual void pass(const BlockBody& body) = 0;
  // Visits one block, between passes; `changes`: the body's changes are kept.
  virtual void visit(size_t block, bool changes, const BlockBody& body) = 0;

  virtual bool is_file() const = 0;         // its threads take a block's bytes when the body returns
  virtual size_t bytes() const = 0;         // of all blocks
  virtual size_t memory_bytes() const = 0;  // host memory that it holds
  virtual std::string place() const = 0;    // for a log: "in a file in /scratch, by direct I/O"
};

// Returns host memory, which its owner keeps until the store is gone.
using HostMemory = std::function<std::span<std::byte>(size_t bytes)>;

// All blocks stay in the host's memory: for state that does not fit on a GPU.
class HostBlocks : public BlockStore {
 public:
  explicit HostBlocks(HostMemory memory) : memory_(std::move(memory)) {}

  size_t add(std::span<const std::byte> content) override;
  void begin() override {}
  void pass(const BlockBody& body) override;
  void visit(size_t block, bool changes, const BlockBody& body) override;
  bool is_file() const override { return false; }
  size_t bytes() const override;
  size_t memory_bytes() const override { return bytes(); }
  std::string place() const override { return "in the host's memory"; }

 private:
  HostMemory memory_;
  std::vector<std::span<std::byte>> blocks_;
};

}  // namespace welkin::train
