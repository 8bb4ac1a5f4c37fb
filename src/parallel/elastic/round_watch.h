// SPDX-License-Identifier: Apache-2.0
// Watches a round for one rank. A thread asks the launcher's board, ten times a second, whether the round is over. Then it
// shuts down the round's connections, so that every waiting call of the rank ends with an error. It also answers for a rank
// that computes.
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
  // Construct it before the round's connections are made. CommError if the board cannot be reached.
  RoundWatch(const launch::BoardPlace& board, launch::Round round, launch::ProcessId id);
  ~RoundWatch();
  RoundWatch(const RoundWatch&) = delete;
  RoundWatch& operator=(const RoundWatch&) = delete;

  // True if the round has ended: by the board, or by end(). From any thread.
  bool is_over() const { return is_over_; }
  // True if processes wait to join; the ranks should then leave between two steps. From any thread.
  bool is_requested() const { return is_requested_; }
  // Call it when this rank leaves: it shuts down the round's connections.
  void end();

 private:
  void watch();
  void look();

  StoreBoard board_;
  launch::Round round_;
  launch::ProcessId id_;
  std::set<ino_t> before_;  // connections from before the round
  std::atomic<bool> is_over_ = false, is_requested_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace welkin::parallel
