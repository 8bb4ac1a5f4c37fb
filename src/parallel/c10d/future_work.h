// SPDX-License-Identifier: Apache-2.0
// A call of c10d that is done when its future is. Heavy: only c10d's adapter includes it.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

namespace welkin::parallel {

class FutureWork : public c10d::Work {
 public:
  explicit FutureWork(c10::intrusive_ptr<c10::ivalue::Future> future) : future_(std::move(future)) {}
  bool isCompleted() override { return future_->completed(); }
  bool wait(std::chrono::milliseconds /*timeout*/) override {
    future_->waitAndThrow();
    return true;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace welkin::parallel
