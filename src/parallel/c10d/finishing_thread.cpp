// SPDX-License-Identifier: Apache-2.0
#include "parallel/c10d/finishing_thread.h"

#include <exception>
#include <utility>

namespace welkin::parallel {
namespace {

using c10::ivalue::Future;

// Done when its future is.
class FutureWork : public c10d::Work {
 public:
  explicit FutureWork(c10::intrusive_ptr<Future> future) : future_(std::move(future)) {}
  bool isCompleted() override { return future_->completed(); }
  bool wait(std::chrono::milliseconds /*timeout*/) override {
    future_->waitAndThrow();
    return true;
  }
  c10::intrusive_ptr<Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<Future> future_;
};

}  // namespace

FinishingThread::~FinishingThread() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

FinishingThread::WorkPtr FinishingThread::add(std::function<void()> finish, std::vector<at::Tensor> results) {
  auto future = c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()));
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    pending_.push_back({std::move(finish), future, std::move(results)});
  }
  wake_.notify_one();
  return c10::make_intrusive<FutureWork>(std::move(future));
}

void FinishingThread::run() {
  while (true) {
    Pending next;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return over_ || !pending_.empty(); });
      if (pending_.empty()) return;
      next = std::move(pending_.front());
      pending_.pop_front();
    }
    try {
      next.finish();
      next.finish = nullptr;  // and with it what the call held
      next.future->markCompleted(c10::IValue(std::move(next.results)));
    } catch (const std::exception&) {
      next.future->setError(std::current_exception());
    }
  }
}

}  // namespace welkin::parallel
