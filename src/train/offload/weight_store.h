// SPDX-License-Identifier: Apache-2.0
// Weights in a file: parameters that have memory only while somebody holds them. A parameter stays the same tensor; the memory
// of its storage comes and goes, so that references that autograd has kept find the same values again.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <span>
#include <vector>

#include "core/process/thread_pool.h"
#include "train/offload/spill_file.h"

namespace welkin::train {

class WeightStore {
 public:
  // Takes over weights on the CPU: their values go into the file, and their memory is freed. DataError if the disk has no space
  // for them.
  WeightStore(std::filesystem::path folder, std::vector<at::Tensor> weights);
  ~WeightStore();
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;

  // Begins to read a weight that is not in memory. It stays until let_go() was called as often. MemoryError if memory is short.
  void start(size_t weight);
  // Waits for the weight. DataError if the disk fails, or returns other bytes than were written.
  void wait(size_t weight);
  // Called after wait(). `is_changed`: the values are written, beside later work.
  void let_go(size_t weight, bool is_changed);

  // Returns a copy of the values, and sets them, whether or not the weight is held.
  at::Tensor read(size_t weight);
  void write(size_t weight, const at::Tensor& values);

  size_t bytes() const { return file_.bytes(); }
  std::string place() const;

 private:
  using Done = std::shared_future<void>;
  struct Weight {
    at::Tensor tensor;
    size_t block = 0, holders = 0;
    bool is_changed = false;
    at::Tensor memory{};  // uint8, while the weight is in memory or on its way; a part of it is aligned to pages
    Done done{};          // of the last transfer
  };

  Done begin(std::function<void()> work);
  void write_out(Weight& weight);

  SpillFile file_;
  std::vector<Weight> weights_;
  std::deque<Done> writing_;
  ThreadPool threads_;  // last: its threads use all of the above
};

}  // namespace welkin::train
