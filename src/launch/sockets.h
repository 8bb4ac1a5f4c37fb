// SPDX-License-Identifier: Apache-2.0
// The sockets of the rendezvous: bound by ourselves, so that no port is "free" and then taken, and nothing listens wider than it
// must. No torch.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/file_descriptor.h"

namespace welkin::launch {

struct Listener {
  FileDescriptor socket;
  int64_t port = 0;
};

// Binds and listens at the address that `host` names on this machine; port 0: any. CommError when the port is taken, or when the
// name is none of this machine's. `remedy` says how to choose another.
Listener listen_at(const std::string& host, int64_t port);

// Waits until host:port accepts a connection, which does not block (O_NONBLOCK). CommError that tells an unknown name, an
// unreachable host and a silent port apart.
FileDescriptor connect_to(const std::string& host, int64_t port, std::chrono::milliseconds timeout);

// Does the same, and returns the own address of the connection: that of the interface for collectives.
std::string reach(const std::string& host, int64_t port, std::chrono::milliseconds timeout);

// The address of a network interface. CommError listing the interfaces of this machine when there is no such one.
std::string interface_address(const std::string& name);

}  // namespace welkin::launch
