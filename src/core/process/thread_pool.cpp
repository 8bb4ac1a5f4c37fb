// SPDX-License-Identifier: Apache-2.0
#include "core/process/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace welkin {
namespace {

// One parallel_for: indices are handed out one by one, since their costs differ (a file that is cached, one that is not).
class IndexLoop {
 public:
  IndexLoop(int64_t count, const std::function<void(int64_t)>& body) : count_(count), body_(body) {}

  void run() {
    for (;;) {
      const int64_t index = take();
      if (index < 0) return;
      std::exception_ptr failure;
      try {
        body_(index);
      } catch (...) {
        failure = std::current_exception();
      }
      finish(index, std::move(failure));
    }
  }

  void wait_and_rethrow() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return running_ == 0; });
    // Moved out: a late helper may be the last owner of the loop, and must not free the exception that the caller is reading.
    if (failed_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  int64_t take() {
    const std::lock_guard lock(mutex_);
    if (next_ == count_ || failed_) return -1;
    ++running_;
    return next_++;
  }

  void finish(int64_t index, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    --running_;
    if (failure && (!failed_ || index < failed_index_)) {
      failed_ = true;
      failure_ = std::move(failure);
      failed_index_ = index;
    }
    if (running_ == 0) done_.notify_all();
  }

  const int64_t count_;
  const std::function<void(int64_t)>& body_;  // the caller's: not touched once next_ reaches count_ and running_ is 0
  std::mutex mutex_;
  std::condition_variable done_;
  int64_t next_ = 0;
  int64_t running_ = 0;
  bool failed_ = false;  // stays when the failure has been taken: a late helper must not start an index
  std::exception_ptr failure_;
  int64_t failed_index_ = 0;
};

}  // namespace

ThreadPool::ThreadPool(ThreadPoolOptions options) : options_(std::move(options)) {
  WELKIN_CHECK(
      options_.num_threads >= 1 && options_.queue_capacity >= 1,
      cat("a pool needs a thread and a slot: num_threads=", options_.num_threads, ", queue_capacity=", options_.queue_capacity));
  threads_.reserve(static_cast<size_t>(options_.num_threads));
  for (int i = 0; i < options_.num_threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    pthread_setname_np(threads_.back().native_handle(), options_.name.substr(0, 15).c_str());
  }
}

ThreadPool::~ThreadPool() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void ThreadPool::submit(Task task) {
  std::unique_lock lock(mutex_);
  slot_free_.wait(lock, [&] { return queue_.size() < options_.queue_capacity; });
  queue_.push_back(std::move(task));
  ++unfinished_;
  task_ready_.notify_one();
}

bool ThreadPool::try_submit(Task task) {
  const std::lock_guard lock(mutex_);
  if (queue_.size() >= options_.queue_capacity) return false;
  queue_.push_back(std::move(task));
  ++unfinished_;
  task_ready_.notify_one();
  return true;
}

void ThreadPool::wait() {
  std::unique_lock lock(mutex_);
  all_done_.wait(lock, [&] { return unfinished_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::parallel_for(int64_t count, const std::function<void(int64_t)>& body) {
  if (count <= 0) return;
  // The loop is shared: a helper may get its thread only after the loop is over, and must then find that nothing is left.
  const auto loop = std::make_shared<IndexLoop>(count, body);
  const int64_t helpers = std::min<int64_t>(count - 1, num_threads());
  for (int64_t i = 0; i < helpers; ++i) {
    if (!try_submit([loop] { loop->run(); })) break;
  }
  loop->run();
  loop->wait_and_rethrow();
}

void ThreadPool::work(const std::stop_token& stop) {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      if (!task_ready_.wait(lock, stop, [&] { return !queue_.empty(); }) || stop.stop_requested()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
      slot_free_.notify_one();
    }
    run_one(std::move(task));
  }
}

void ThreadPool::run_one(Task task) {
  std::exception_ptr failure;
  try {
    task();
  } catch (...) {
    failure = std::current_exception();
  }
  task = nullptr;  // objects that the task captured must be gone when wait() returns
  const std::lock_guard lock(mutex_);
  if (failure && !failure_) failure_ = std::move(failure);
  if (--unfinished_ == 0) all_done_.notify_all();
}

}  // namespace welkin
