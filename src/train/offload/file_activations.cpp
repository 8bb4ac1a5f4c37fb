// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <future>
#include <mutex>
#include <utility>

#include "core/process/thread_pool.h"
#include "core/text.h"
#include "train/offload/activation_store.h"
#include "train/offload/spill_file.h"
#include "train/offload/state_units.h"

namespace welkin::train {
namespace {

constexpr size_t kStagingBuffers = 3;

// A file of chunks of one size, the threads that move them, and the free chunks.
class ChunkFile {
 public:
  using Done = std::shared_future<void>;

  ChunkFile(std::filesystem::path folder, size_t chunk_bytes)
      : file_(std::move(folder), "activations"),
        chunk_bytes_(chunk_bytes),
        threads_({.num_threads = static_cast<int>(kStagingBuffers), .queue_capacity = 1024, .name = "offload"}) {}

  size_t chunk_bytes() const { return chunk_bytes_; }
  SpillFile& file() { return file_; }

  size_t take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        const size_t chunk = free_.back();
        free_.pop_back();
        return chunk;
      }
    }
    return file_.add(chunk_bytes_);
  }
  void give_back(const std::vector<size_t>& chunks) {
    const std::lock_guard lock(mutex_);
    free_.insert(free_.end(), chunks.begin(), chunks.end());
  }
  Done start(std::function<void()> work) {
    const auto task = std::make_shared<std::packaged_task<void()>>(std::move(work));
    Done done = task->get_future().share();
    threads_.submit([task] { (*task)(); });
    return done;
  }

 private:
  SpillFile file_;
  size_t chunk_bytes_;
  std::mutex mutex_;
  std::vector<size_t> free_;
  ThreadPool threads_;
};

std::span<std::byte> page_aligned(const at::Tensor& bytes, size_t length) {
  auto* const begin = static_cast<std::byte*>(bytes.mutable_data_ptr());
  const size_t over = reinterpret_cast<uintptr_t>(begin) % kBlockAlignment;
  return {begin + (over == 0 ? 0 : kBlockAlignment - over), length};
}

class PiecesInFile : public StoredPieces {
 public:
  PiecesInFile(std::shared_ptr<ChunkFile> file, c10::Device device, size_t bytes)
      : file_(std::move(file)), device_(device), bytes_(bytes) {}
  ~PiecesInFile() override {
    for (const auto& transfers : {written_, read_}) {
      for (const ChunkFile::Done& done : transfers) done.wait();
    }
    file_->give_back(chunks_);
  }
  PiecesInFile(const PiecesInFile&) = delete;
  PiecesInFile& operator=(const PiecesInFile&) = delete;

  ChunkFile::Done write(std::span<const std::byte> from) {
    const size_t chunk = file_->take();
    chunks_.push_back(chunk);
    written_.push_back(file_->start([file = file_.get(), chunk, from] { file->file().write(chunk, from); }));
    return written_.back();
  }

  void start() override {
    if (memory_.defined()) return;
    memory_ = at::empty({static_cast<int64_t>(bytes_ + kBlockAlignment)},
                        at::TensorOptions(at::kByte).pinned_memory(device_.is_cuda()));
    const std::span<std::byte> all = page_aligned(memory_, bytes_);
    for (size_t i = 0; i < chunks_.size(); ++i) {
      const size_t begin = i * file_->chunk_bytes();
      const std::span<std::byte> to = all.subspan(begin, std::min(file_->chunk_bytes(), bytes_ - begin));
      read_.push_back(file_->start([file = file_.get(), chunk = chunks_[i], to, before = written_[i]] {
        before.get();  // begun earlier, so some thread works on it
        file->file().read(chunk, to);
      }));
    }
  }

  at::Tensor bytes() override {
    start();
    for (const ChunkFile::Done& done : read_) done.get();
    const size_t over = reinterpret_cast<uintptr_t>(memory_.const_data_ptr()) % kBlockAlignment;
    const auto offset = static_cast<int64_t>(over == 0 ? 0 : kBlockAlignment - over);
    return memory_.narrow(0, offset, static_cast<int64_t>(bytes_)).to(device_);
  }

 private:
  std::shared_ptr<ChunkFile> file_;
  c10::Device device_;
  size_t bytes_;
  at::Tensor memory_;  // of the host
  std::vector<size_t> chunks_;
  std::vector<ChunkFile::Done> written_, read_;
};

class FileActivations : public ActivationStore {
 public:
  FileActivations(std::filesystem::path folder, c10::Device device, size_t buffer_bytes)
      : device_(device), buffers_(device), file_(std::make_shared<ChunkFile>(std::move(folder), buffer_bytes)) {
    for (Staging& staging : staging_) staging.memory = buffers_.take(buffer_bytes);
  }
  ~FileActivations() override {
    for (const Staging& staging : staging_) {
      if (staging.busy.valid()) staging.busy.wait();
    }
  }
  FileActivations(const FileActivations&) = delete;
  FileActivations& operator=(const FileActivations&) = delete;

  std::unique_ptr<StoredPieces> put(const std::vector<at::Tensor>& pieces) override {
    const at::NoGradGuard no_grad;
    const std::vector<size_t> offsets = piece_offsets(pieces);
    auto stored = std::make_unique<PiecesInFile>(file_, device_, offsets.back());
    for (size_t begin = 0; begin < offsets.back(); begin += file_->chunk_bytes()) {
      const size_t end = std::min(begin + file_->chunk_bytes(), offsets.back());
      Staging& staging = next_free();
      for (size_t i = 0; i < pieces.size(); ++i) copy_overlap(pieces[i], offsets[i], begin, end, staging.memory);
      staging.busy = stored->write(staging.memory.first(end - begin));
    }
    return stored;
  }

  std::string place() const override {
    return cat("in a file in ", file_->file().folder().string(),
               file_->file().is_direct() ? ", by direct I/O" : ", through the page cache: this file system has no direct I/O");
  }
  size_t memory_bytes() const override { return kStagingBuffers * file_->chunk_bytes(); }

 private:
  struct Staging {
    std::span<std::byte> memory;
    ChunkFile::Done busy;
  };

  // Waits for a disk that is slower than the forward pass, so that memory stays bounded.
  Staging& next_free() {
    Staging& staging = staging_[next_++ % kStagingBuffers];
    if (staging.busy.valid()) staging.busy.get();
    return staging;
  }

  // Copies the part of a piece, which begins at `offset`, that lies in [begin, end) of the block.
  static void copy_overlap(const at::Tensor& piece, size_t offset, size_t begin, size_t end, std::span<std::byte> to) {
    const size_t first = std::max(begin, offset), last = std::min(end, offset + static_cast<size_t>(piece.numel()));
    if (first >= last) return;
    const auto length = static_cast<int64_t>(last - first);
    at::Tensor target = at::from_blob(to.data() + (first - begin), {length}, at::TensorOptions(at::kByte));
    target.copy_(piece.narrow(0, static_cast<int64_t>(first - offset), length));
  }

  c10::Device device_;
  HostBuffers buffers_;
  std::array<Staging, kStagingBuffers> staging_{};
  size_t next_ = 0;
  std::shared_ptr<ChunkFile> file_;
};

}  // namespace

std::vector<size_t> piece_offsets(const std::vector<at::Tensor>& pieces) {
  std::vector<size_t> offsets;
  size_t end = 0;
  for (const at::Tensor& piece : pieces) {
    offsets.push_back(end);
    end += (static_cast<size_t>(piece.numel()) + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
  }
  offsets.push_back(aligned_size(end));
  return offsets;
}

std::unique_ptr<ActivationStore> file_activations(std::filesystem::path folder, c10::Device device, int64_t buffer_bytes) {
  return std::make_unique<FileActivations>(std::move(folder), device, aligned_size(static_cast<size_t>(buffer_bytes)));
}

}  // namespace welkin::train
