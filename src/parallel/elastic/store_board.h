// SPDX-License-Identifier: Apache-2.0
// The board of an elastic job (launch/elastic/job_board.h) over the rendezvous store, which the first node's launcher serves.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "launch/elastic/job_board.h"
#include "parallel/store/store_client.h"

namespace welkin::parallel {

// A connection to the board, for one thread.
class StoreBoard : public launch::JobBoard {
 public:
  // CommError if nobody listens there within the time, or if the job's secret is wrong.
  StoreBoard(const launch::BoardPlace& place, std::chrono::milliseconds timeout);

  void set(const std::string& key, const std::string& text) override;
  std::optional<std::string> read(const std::string& key) override;

 private:
  StoreClient client_;
};

// Serves the store if the place has a listener, and connects to it.
std::unique_ptr<launch::JobBoard> make_store_board(const launch::BoardPlace& place);

}  // namespace welkin::parallel
