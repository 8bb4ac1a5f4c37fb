// SPDX-License-Identifier: Apache-2.0
// Blocks of bytes that a pass goes through one after the other, wherever they are kept between passes. Torch-free.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace welkin::train {

// `span` is the block's memory while the call lasts, aligned to a page.
using BlockBody = std::function<void(size_t block, std::span<std::byte> memory)>;

class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // One more block, with this content, which lies aligned to a page. All are added before the first pass.
  virtual size_t add(std::span<const std::byte> content) = 0;
  // After the last.
  virtual void begin() = 0;

  // body(block, memory) for every block in order; what it changes is kept. Where it throws, nothing more is done.
  virtual void pass(const BlockBody& body) = 0;
  // One block alone, between passes; `changes`: what the body has made of it is kept.
  virtual void visit(size_t block, bool changes, const BlockBody& body) = 0;

  virtual bool is_file() const = 0;         // whose threads take a block's bytes when the body returns
  virtual size_t bytes() const = 0;         // of all blocks
  virtual size_t memory_bytes() const = 0;  // that it holds of the host's memory
  virtual std::string place() const = 0;    // for a log: "in a file in /scratch, by direct I/O"
};

// Gives host memory; the owner keeps it until the store is gone.
using HostMemory = std::function<std::span<std::byte>(size_t bytes)>;

// In the host's memory, all of them all the time: for what a GPU has no room for.
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
