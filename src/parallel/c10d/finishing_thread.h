// SPDX-License-Identifier: Apache-2.0
// Calls of c10d that end on a thread of our own, in the order in which they began. Heavy: only c10d's adapter includes it.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

namespace welkin::parallel {

class FinishingThread {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  FinishingThread() = default;
  FinishingThread(const FinishingThread&) = delete;
  FinishingThread& operator=(const FinishingThread&) = delete;
  // Waits for all that began.
  ~FinishingThread();

  // A call that is over when `finish` returns, which waits for what the call needs; what it throws is the call's error. `results`
  // are the value of its future. The thread begins with the first call.
  WorkPtr add(std::function<void()> finish, std::vector<at::Tensor> results);

 private:
  struct Pending {
    std::function<void()> finish;
    c10::intrusive_ptr<c10::ivalue::Future> future;
    std::vector<at::Tensor> results;
  };

  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Pending> pending_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace welkin::parallel
