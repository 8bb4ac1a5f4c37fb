// SPDX-License-Identifier: Apache-2.0
// The connection of this process to the other ranks: the rendezvous store and the groups made through it. At most one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "parallel/comm/collective_monitor.h"
#include "parallel/comm/group.h"
#include "parallel/comm/link.h"

namespace welkin::parallel {

// How the members of a group exchange data that lies in the memory of one host.
enum class SharedMemory {
  Off,      // over the network
  Buffers,  // through memory that they share
  Auto,     // the same, and long messages are read from the members' own memory where the kernel allows it
};

struct ConnectOptions {
  int64_t rank = 0;
  int64_t world_size = 1;
  // The store: on rank 0, reached by all at host:port. `listen_fd` is a bound and listening socket for rank 0 (binding it
  // ourselves avoids the race of "find a free port, then use it" and the store's default of listening on all interfaces).
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  int listen_fd = -1;
  bool store_is_served = false;                 // somebody else (torchrun's agent) serves the store at host:port
  bool store_is_launchers = false;              // our launcher serves our store at host:port (an elastic job)
  std::string secret = {};                      // of the job, equal on all ranks: who lacks it is not heard (parallel/store)
  std::string file = {};                        // a path instead of host and port, on a file system that all ranks share
  int64_t attempt = 0;                          // restarts so far: the keys of two attempts are apart
  std::string own_address = "127.0.0.1";        // on which this rank's collectives listen
  std::chrono::milliseconds deadline{600'000};  // of the rendezvous and of each collective
  // Called once by this rank's watchdog when a call runs far past the deadline because the back end did not end it. The text
  // says what hangs and what the other ranks do. The callback must end the process. Empty: no such check.
  std::function<void(const std::string&)> on_hang = {};
  // Whether the ranks have parted already, so that a failed call needs no explanation (an elastic job). Empty: never.
  std::function<bool()> is_over = {};
  bool with_gpu = false;  // this rank's tensors may lie on a GPU: groups have a back end for it (NCCL) too
  SharedMemory shared_memory = SharedMemory::Auto;
  bool is_one_host = true;                  // all ranks of the job are on this host
  std::shared_ptr<EmulatedLink> link = {};  // for measuring: transfers end when this link would have carried them
};

class Connection {
 public:
  // Every rank calls it; returns when the store answers. CommError when it does not within the deadline. From then on the process
  // ignores SIGPIPE, unless it has a handler of its own: a lost rank is an error of the call that it is missed in.
  static std::unique_ptr<Connection> open(const ConnectOptions& options);

  virtual ~Connection() = default;

  // The group `members`, of which this rank is one; its members make their groups in the same order. A group of one needs no
  // communication. Returns when every member has it; CommError when one does not arrive within the deadline.
  virtual Group make_group(const std::string& name, GroupMembers members) = 0;

  virtual int64_t rank() const = 0;
  virtual int64_t world_size() const = 0;
  virtual KeyValueStore& kv_store() = 0;
  virtual void trace(const observe::Tracer* tracer) = 0;  // as World::trace
  virtual FlightRecorder& recorder() = 0;
  virtual const std::string& carrier() const = 0;  // of collectives of the first group, in words: "shared memory"
  virtual int64_t strangers() const = 0;  // connections to rank 0's store that were closed, since they did not have the secret

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
