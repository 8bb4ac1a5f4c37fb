// SPDX-License-Identifier: Apache-2.0
#include "train/offload/block_ring.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "core/text.h"

namespace welkin::train {

size_t HostBlocks::add(std::span<const std::byte> content) {
  blocks_.push_back(memory_(content.size()));
  std::ranges::copy(content, blocks_.back().begin());
  return blocks_.size() - 1;
}

void HostBlocks::pass(const BlockBody& body) {
  for (size_t block = 0; block < blocks_.size(); ++block) body(block, blocks_[block]);
}

void HostBlocks::visit(size_t block, bool /*changes*/, const BlockBody& body) { body(block, blocks_.at(block)); }

size_t HostBlocks::bytes() const {
  size_t sum = 0;
  for (const std::span<std::byte>& block : blocks_) sum += block.size();
  return sum;
}

FileBlocks::FileBlocks(std::filesystem::path folder, std::string holds, HostMemory memory)
    : file_(std::move(folder), std::move(holds)),
      memory_(std::move(memory)),
      threads_({.num_threads = static_cast<int>(kBuffers), .queue_capacity = 64, .name = "offload"}) {}

size_t FileBlocks::add(std::span<const std::byte> content) {
  const size_t block = file_.add(content.size());
  const bool is_zero =
      content.empty() || (content[0] == std::byte{0} && std::memcmp(content.data(), content.data() + 1, content.size() - 1) == 0);
  if (!is_zero) file_.write(block, content);
  return block;
}

std::string FileBlocks::place() const {
  return cat("in a file in ", file_.folder().string(),
             file_.is_direct() ? ", by direct I/O" : ", through the page cache: this file system has no direct I/O");
}

FileBlocks::~FileBlocks() { wait_for_all(); }

void FileBlocks::begin() {
  for (size_t block = 0; block < file_.num_blocks(); ++block) buffer_bytes_ = std::max(buffer_bytes_, file_.bytes_of(block));
  const std::span<std::byte> all = memory_(kBuffers * buffer_bytes_);
  for (size_t i = 0; i < kBuffers; ++i) buffers_[i] = all.subspan(i * buffer_bytes_, buffer_bytes_);
  writing_.resize(file_.num_blocks());
}

FileBlocks::Done FileBlocks::start(std::function<void()> work) {
  const auto task = std::make_shared<std::packaged_task<void()>>(std::move(work));
  Done done = task->get_future().share();
  threads_.submit([task] { (*task)(); });
  return done;
}

// A transfer waits only for earlier ones, and threads take transfers in order, so none waits for ever.
void FileBlocks::start_read(size_t block) {
  const size_t buffer = std::exchange(next_buffer_, (next_buffer_ + 1) % kBuffers);
  const Done done = start([this, block, memory = memory_of(block, buffer), before = busy_[buffer], written = writing_[block]] {
    if (before.valid()) before.wait();
    if (written.valid()) written.get();
    file_.read(block, memory);
  });
  busy_[buffer] = done;
  reading_.push_back({block, buffer, done});
}

void FileBlocks::start_write(size_t block, size_t buffer) {
  const Done done = start([this, block, memory = memory_of(block, buffer)] { file_.write(block, memory); });
  busy_[buffer] = writing_[block] = done;
}

void FileBlocks::go_through(const BlockBody& body) {
  const size_t num = file_.num_blocks();
  if (num == 0) return;
  let_go();
  if (reading_.empty()) start_read(0);
  for (size_t block = 0; block < num; ++block) {
    const Reading now = reading_.front();
    reading_.pop_front();
    if (reading_.empty() && block + 1 < num) start_read(block + 1);
    now.done.get();
    body(block, memory_of(block, now.buffer));
    start_write(block, now.buffer);
  }
  for (size_t block = 0; block < std::min<size_t>(2, num); ++block) start_read(block);
}

// Ends all transfers and drops blocks that were read ahead.
void FileBlocks::settle() {
  for (const Reading& reading : reading_) reading.done.get();
  reading_.clear();
  for (const Done& done : writing_) {
    if (done.valid()) done.get();
  }
}

// Writes the block that visit() keeps back into the file.
void FileBlocks::let_go() {
  if (held_ && held_is_changed_) file_.write(*held_, memory_of(*held_, 0));
  held_.reset();
  held_is_changed_ = false;
}

void FileBlocks::look_at(size_t block, bool changes, const BlockBody& body) {
  if (held_ != block) {
    settle();
    let_go();
    file_.read(block, memory_of(block, 0));
    held_ = block;
  }
  held_is_changed_ = held_is_changed_ || changes;
  body(block, memory_of(block, 0));
}

void FileBlocks::wait_for_all() const noexcept {
  for (const Reading& reading : reading_) reading.done.wait();
  for (const Done& done : busy_) {
    if (done.valid()) done.wait();
  }
}

template <typename Work>
void FileBlocks::guarded(const Work& work) {
  if (failure_) std::rethrow_exception(failure_);
  try {
    work();
  } catch (...) {
    wait_for_all();
    failure_ = std::current_exception();
    throw;
  }
}

void FileBlocks::pass(const BlockBody& body) {
  guarded([&] { go_through(body); });
}

void FileBlocks::visit(size_t block, bool changes, const BlockBody& body) {
  guarded([&] { look_at(block, changes, body); });
}

}  // namespace welkin::train
