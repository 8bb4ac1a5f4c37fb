// SPDX-License-Identifier: Apache-2.0
// A process of an elastic job, between rounds: it announces itself, waits for a round that names it, and leaves the round.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/elastic/round.h"
#include "launch/ranks.h"
#include "parallel/elastic/store_board.h"

namespace welkin::parallel {

class ElasticMember {
 public:
  // `place`: from find_ranks(), with an elastic_id. All calls throw a CommError if the launcher's board cannot be reached. A
  // lost connection is made anew.
  ElasticMember(const launch::RankInfo& place, const std::string& secret, std::chrono::milliseconds timeout);

  // `sizes`: numbers of ranks with which the run can continue; equal on all ranks.
  void say_hello(const std::vector<int64_t>& sizes);
  // Waits for the next round that names this process. Nothing when the job is over, or when `is_stopped` returns true.
  std::optional<launch::Round> await_round(const std::function<bool()>& is_stopped);
  void leave(const launch::Round& round, const std::string& why);
  void say_begun();

  const launch::ProcessId& id() const { return id_; }
  const launch::BoardPlace& board_place() const { return board_place_; }

 private:
  template <typename Ask>
  auto ask(Ask ask);

  launch::ProcessId id_;
  launch::BoardPlace board_place_;
  std::unique_ptr<StoreBoard> board_;
  int64_t latest_ = 0;  // the last round that was read
};

// The place of a member in a round. Its local rank does not change, and with it its device.
launch::RankInfo place_in(const launch::Round& round, const launch::RankInfo& started, const launch::ProcessId& id);

}  // namespace welkin::parallel
