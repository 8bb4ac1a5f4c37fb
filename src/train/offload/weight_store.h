// SPDX-License-Identifier: Apache-2.0
// Weights in a file: parameters whose memory is there while somebody holds them. A parameter stays the tensor that it is; the
// memory of its storage comes and goes, so that what autograd has kept of it finds the same values there again.
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
  // Takes over weights on the CPU: their values go into the file, and their memory goes. DataError where there is no room for
  // them.
  WeightStore(std::filesystem::path folder, std::vector<at::Tensor> weights);
  ~WeightStore();
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;

  // Begins to read what is not there. It stays until let_go() was called as often. MemoryError where there is no room for it.
  void start(size_t weight);
  // Until it is there. DataError where the disk fails, or gives back other bytes than were written.
  void wait(size_t weight);
  // After wait(). `is_changed`: the values are written, beside what comes next.
  void let_go(size_t weight, bool is_changed);

  // Its values, a copy, and what sets them, whoever holds it or not.
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
    at::Tensor memory{};  // while it is there or on its way: uint8, of which a part is aligned to pages
    Done done{};          // of the last transfer
  };

  Done begin(std::function<void()> work);
  void write_out(Weight& weight);

  SpillFile file_;
  std::vector<Weight> weights_;
  std::deque<Done> writing_;
  ThreadPool threads_;  // last: they use all of the above
};

}  // namespace welkin::train
