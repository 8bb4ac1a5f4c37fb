// SPDX-License-Identifier: Apache-2.0
#include "train/offload/weight_store.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "core/text.h"
#include "parallel/shard/parameter_memory.h"

namespace welkin::train {
namespace {

// Weights that may wait in memory for the disk.
constexpr size_t kMostWriting = 2;

// A rank's piece of a small weight may be empty.
size_t block_bytes(const at::Tensor& weight) { return aligned_size(std::max(weight.nbytes(), size_t{1})); }

at::Tensor memory_for(const at::Tensor& weight) {
  return at::empty({static_cast<int64_t>(block_bytes(weight) + kBlockAlignment)}, at::TensorOptions(at::kByte));
}

std::span<std::byte> pages_of(const at::Tensor& memory, const at::Tensor& weight) {
  auto* const begin = static_cast<std::byte*>(memory.mutable_data_ptr());
  const size_t over = reinterpret_cast<uintptr_t>(begin) % kBlockAlignment;
  return {begin + (over == 0 ? 0 : kBlockAlignment - over), block_bytes(weight)};
}

// `memory` null: the weight gets no memory.
void point_to(const at::Tensor& weight, std::byte* memory) {
  c10::StorageImpl& storage = *weight.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(at::DataPtr(memory, weight.device()));
  storage.set_nbytes(memory == nullptr ? size_t{0} : weight.nbytes());
}

}  // namespace

WeightStore::WeightStore(std::filesystem::path folder, std::vector<at::Tensor> weights)
    : file_(std::move(folder), "weights"), threads_({.num_threads = 2, .queue_capacity = 256, .name = "weights"}) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& tensor : weights) weights_.push_back({.tensor = tensor, .block = file_.add(block_bytes(tensor))});
  for (Weight& weight : weights_) {
    parallel::own_storage(weight.tensor);
    const at::Tensor memory = memory_for(weight.tensor);
    const std::span<std::byte> pages = pages_of(memory, weight.tensor);
    std::ranges::fill(pages, std::byte{0});
    if (weight.tensor.numel() > 0) std::memcpy(pages.data(), weight.tensor.const_data_ptr(), weight.tensor.nbytes());
    file_.write(weight.block, pages);
    point_to(weight.tensor, nullptr);
  }
}

WeightStore::~WeightStore() {
  for (Weight& weight : weights_) {
    if (weight.done.valid()) weight.done.wait();
    point_to(weight.tensor, nullptr);
  }
}

std::string WeightStore::place() const {
  return cat("in a file in ", file_.folder().string(),
             file_.is_direct() ? ", by direct I/O" : ", through the page cache: this file system has no direct I/O");
}

WeightStore::Done WeightStore::begin(std::function<void()> work) {
  const auto task = std::make_shared<std::packaged_task<void()>>(std::move(work));
  Done done = task->get_future().share();
  threads_.submit([task] { (*task)(); });
  return done;
}

// Threads take transfers in order, so none waits for a later one.
void WeightStore::start(size_t number) {
  Weight& weight = weights_[number];
  if (weight.holders++ > 0) return;
  weight.memory = memory_for(weight.tensor);
  weight.done = begin([this, block = weight.block, pages = pages_of(weight.memory, weight.tensor), before = weight.done] {
    if (before.valid()) before.get();
    file_.read(block, pages);
  });
}

void WeightStore::wait(size_t number) {
  Weight& weight = weights_[number];
  weight.done.get();
  point_to(weight.tensor, pages_of(weight.memory, weight.tensor).data());
}

void WeightStore::let_go(size_t number, bool is_changed) {
  Weight& weight = weights_[number];
  weight.is_changed = weight.is_changed || is_changed;
  if (--weight.holders > 0) return;
  point_to(weight.tensor, nullptr);
  if (std::exchange(weight.is_changed, false)) write_out(weight);
  weight.memory = at::Tensor();
}

at::Tensor WeightStore::read(size_t number) {
  start(number);
  wait(number);
  at::Tensor values = weights_[number].tensor.detach().clone();
  let_go(number, /*is_changed=*/false);
  return values;
}

void WeightStore::write(size_t number, const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  start(number);
  wait(number);
  weights_[number].tensor.detach().copy_(values);
  let_go(number, /*is_changed=*/true);
}

void WeightStore::write_out(Weight& weight) {
  while (writing_.size() >= kMostWriting) {
    writing_.front().get();
    writing_.pop_front();
  }
  // The transfer's future keeps its arguments alive: the memory must not be among them.
  const std::span<std::byte> pages = pages_of(weight.memory, weight.tensor);
  weight.done = begin([this, block = weight.block, memory = weight.memory, pages]() mutable {
    const at::Tensor kept = std::move(memory);
    file_.write(block, pages);
  });
  writing_.push_back(weight.done);
}

}  // namespace welkin::train
