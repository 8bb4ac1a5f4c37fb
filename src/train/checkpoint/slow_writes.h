// SPDX-License-Identifier: Apache-2.0
// Waits of ranks for those that write. A collective has a deadline, after which a rank counts as lost and the run ends; a disk
// has none. So no rank waits for files within one collective: one that writes makes short ones again and again, as a sign that it
// goes on. A rank that is lost is found in them as in any other. Signs are given while this process's files grow: after a
// deadline without progress there are none, and the run ends as with any rank that hangs. Of a world of one nothing is needed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "core/stopwatch.h"
#include "parallel/comm/group.h"

namespace welkin::train {

// Whether this process's files have grown lately.
class WriteProgress {
 public:
  explicit WriteProgress(std::chrono::milliseconds patience);
  bool is_alive();

 private:
  std::chrono::milliseconds patience_;
  uint64_t seen_;
  Stopwatch since_;
};

// The longest that a collective of these ranks may take; 0 of a world of one.
std::chrono::milliseconds deadline_of(const parallel::Group& world);

// True if the work of this rank ended; it waits for that, at most for so long.
using EndsWithin = std::function<bool(std::chrono::milliseconds)>;

// Returns when the work of every rank has ended. Every rank calls it. CommError when a rank is lost.
void await_all(const parallel::Group& world, const EndsWithin& ends_within);

// Calls `write`, and returns when that of every rank has returned. Every rank calls it. Makes no other collective. Throws
// CommError when a rank is lost, else what `write` throws.
void write_together(const parallel::Group& world, const std::function<void()>& write);

// Gives a sign a few times per deadline on a thread of its own, while files grow, until this object ends or `give` throws.
class SignThread {
 public:
  SignThread(std::chrono::milliseconds deadline, std::function<void()> give);
  ~SignThread();
  SignThread(const SignThread&) = delete;
  SignThread& operator=(const SignThread&) = delete;

 private:
  void run(std::chrono::milliseconds deadline, const std::function<void()>& give);

  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

// Of the first rank while it writes for all: it asks the others for their parts when it comes to them, and gives signs in
// between. The others call next_word() and do what each word means, until the last.
class FirstWrites {
 public:
  static constexpr int64_t kEnd = 1;  // further words are the caller's, from 2 on

  explicit FirstWrites(const parallel::Group& world);

  // Says a word; then `exchange` may make the collectives that it stands for. Each throws CommError when a rank is lost.
  void ask(int64_t word, const std::function<void()>& exchange = {});
  void end() { ask(kEnd); }

  // On the other ranks.
  static int64_t next_word(const parallel::Group& world);

 private:
  void give_sign();

  parallel::Group world_;
  std::mutex mutex_;  // held in collectives: the thread makes none beside those of a word
  bool over_ = false;
  std::exception_ptr failure_;  // of the thread
  std::optional<SignThread> signs_;
};

}  // namespace welkin::train
