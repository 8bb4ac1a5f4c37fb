// SPDX-License-Identifier: Apache-2.0
// This process among those of a run: the rendezvous store, and the groups made through it. A process has at most one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "parallel/comm/call_desk.h"
#include "parallel/comm/group.h"
#include "parallel/comm/link.h"

namespace welkin::parallel {

struct ConnectOptions {
  int64_t rank = 0;
  int64_t world_size = 1;
  // The store: on rank 0, reached by all at host:port. `listen_fd` is a bound and listening socket for rank 0 (binding it
  // ourselves avoids the race of "find a free port, then use it" and the store's default of listening on all interfaces).
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  int listen_fd = -1;
  bool store_is_served = false;                 // somebody else (torchrun's agent) serves the store at host:port
  std::string file = {};                        // a path instead of host and port, on a file system that all ranks share
  int64_t attempt = 0;                          // restarts so far: the keys of two attempts are apart
  std::string own_address = "127.0.0.1";        // on which this rank's collectives listen
  std::chrono::milliseconds deadline{600'000};  // of the rendezvous and of each collective
  // Called by this rank's watch, once, when a call has been under way for far longer than the deadline, which the back end has
  // not kept: what hangs and what the other ranks do. It is to end the process. Empty: nobody watches for that.
  std::function<void(const std::string&)> on_hang = {};
  bool with_gpu = false;                    // this rank's tensors may lie on a GPU: groups have a back end for it (NCCL) too
  std::shared_ptr<EmulatedLink> link = {};  // for measuring: transfers end when this link would have carried them
};

class Connection {
 public:
  // Every rank calls it; returns when the store answers. CommError when it does not within the deadline.
  static std::unique_ptr<Connection> open(const ConnectOptions& options);

  virtual ~Connection() = default;

  // The group `members`, of which this rank is one; its members make their groups in the same order. A group of one needs no
  // communication. Returns when every member has it; CommError when one does not arrive within the deadline.
  virtual Group make_group(const std::string& name, GroupMembers members) = 0;

  virtual int64_t rank() const = 0;
  virtual int64_t world_size() const = 0;
  virtual NoticeBoard& board() = 0;
  virtual void trace(const observe::Tracer* tracer) = 0;  // as World::trace
  virtual FlightRecorder& recorder() = 0;

  // Before a rank stops because of an error of its own: the others' failures will name it. Never throws.
  void announce_stop(const std::string& why) noexcept;
  // The orderly end: every rank waits for the others.
  virtual void close() = 0;
};

// A socket bound to `address` (dotted) and a free port, listening; the port is returned besides. CommError when that fails.
struct ListeningSocket {
  int fd = -1;
  uint16_t port = 0;
};
ListeningSocket listen_on(const std::string& address, uint16_t port = 0);

}  // namespace welkin::parallel
