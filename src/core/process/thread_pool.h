// SPDX-License-Identifier: Apache-2.0
// A fixed number of threads behind a bounded queue. The owner waits for the work and gets its exceptions; nothing else knows the
// threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace welkin {

struct ThreadPoolOptions {
  int num_threads = 1;         // at least 1
  size_t queue_capacity = 64;  // tasks waiting for a thread, at least 1
  std::string name = "pool";   // shown by debuggers and `top -H`, cut to 15 characters
};

class ThreadPool {
 public:
  using Task = std::function<void()>;

  explicit ThreadPool(ThreadPoolOptions options);
  // Drops the tasks that no thread has taken, finishes the running ones, joins. Call wait() before to see every error.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(threads_.size()); }

  // Queues a task; waits while the queue is full. Not from inside a task: a pool full of waiting tasks would deadlock.
  void submit(Task task);

  // Returns when every task so far is done, and rethrows the first exception that one of them threw since the last wait().
  void wait();

  // Calls body(i) for i in [0, count), in any order, on the pool and on the calling thread, and returns when all are done. After
  // an exception no new index is started; the one of the lowest failed index is rethrown here. May be called from several threads
  // and tasks.
  void parallel_for(int64_t count, const std::function<void(int64_t)>& body);

 private:
  bool try_submit(Task task);
  void work(const std::stop_token& stop);
  void run_one(Task task);

  ThreadPoolOptions options_;
  std::mutex mutex_;
  std::condition_variable_any task_ready_;
  std::condition_variable slot_free_;
  std::condition_variable all_done_;
  std::deque<Task> queue_;
  size_t unfinished_ = 0;  // queued or running
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;  // last: the threads use all of the above
};

}  // namespace welkin
