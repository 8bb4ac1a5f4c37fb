// SPDX-License-Identifier: Apache-2.0
// The rendezvous store as c10d takes it. Heavy: only adapters include it.
#pragma once

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "parallel/comm/connection.h"
#include "parallel/store/job_key.h"
#include "parallel/store/store_server.h"

namespace welkin::parallel {

struct OpenStore {
  std::unique_ptr<StoreServer> server;  // of rank 0, where the store is not a file
  c10::intrusive_ptr<c10d::Store> store;
  JobKey key{};
  std::string job_nonce;  // rank 0's, in hexadecimal digits: what is proven in one job proves nothing in another
};

// Rank 0, or the launcher of an elastic job, serves it at the options' address; where torchrun's agent has a store there, at a
// port of its own that the agent's store tells. Throws CommError, or what c10d throws.
OpenStore open_store(const ConnectOptions& options);

}  // namespace welkin::parallel
