// SPDX-License-Identifier: Apache-2.0
// The watch of a rank in a round. A thread asks the launcher's board, ten times a second, whether the round is over. Then it
// shuts down the connections that were made in it, so that whatever the rank waits in ends with an error; and it answers for a
// rank that computes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "launch/elastic/round.h"
#include "parallel/elastic/store_board.h"

namespace welkin::parallel {

class RoundWatch {
 public:
  // Before the round's connections are made. CommError where the board is not reached.
  RoundWatch(const launch::BoardPlace& board, launch::Round round, launch::ProcessId id);
  ~RoundWatch();
  RoundWatch(const RoundWatch&) = delete;
  RoundWatch& operator=(const RoundWatch&) = delete;

  // Whether the round has ended: by the board, or by end(). From any thread.
  bool is_over() const { return is_over_; }
  // Whether processes wait to join, for which the ranks should leave between two steps. From any thread.
  bool is_requested() const { return is_requested_; }
  // This rank leaves: the connections of the round are shut down.
  void end();

 private:
  void watch();
  void look();

  StoreBoard board_;
  launch::Round round_;
  launch::ProcessId id_;
  std::set<ino_t> before_;  // connections that are not the round's
  std::atomic<bool> is_over_ = false, is_requested_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace welkin::parallel
