// SPDX-License-Identifier: Apache-2.0
#include "launch/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

using Clock = std::chrono::steady_clock;
using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

constexpr const char* kPortRemedy = "Set MASTER_PORT (or --rdzv HOST:PORT) to a free port, the same on all processes";

// Null on failure, with the resolver's text in `reason`.
AddressList resolve(const std::string& host, int64_t port, std::string& reason) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) reason = gai_strerror(error);
  return {error == 0 ? found : nullptr, &freeaddrinfo};
}

std::string address_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* number = address->sa_family == AF_INET6
                           ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)
                           : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  inet_ntop(address->sa_family, number, text.data(), text.size());
  return text.data();
}

int64_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

int bind_and_listen(const addrinfo& address) {
  FileDescriptor listener(socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol));
  if (!listener) return -1;
  const int on = 1;  // a port whose last connections are still closing is free
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener.get(), address.ai_addr, address.ai_addrlen) != 0) return -1;
  if (listen(listener.get(), SOMAXCONN) != 0) return -1;
  return fcntl(listener.get(), F_DUPFD_CLOEXEC, 0);
}

// Returns 0, or errno of a connection that could not be made within the time.
int try_connect(const addrinfo& address, std::chrono::milliseconds timeout, FileDescriptor& connection) {
  connection = FileDescriptor(socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  if (!connection) return errno;
  if (connect(connection.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    pollfd wait{.fd = connection.get(), .events = POLLOUT, .revents = 0};
    if (poll(&wait, 1, static_cast<int>(timeout.count())) != 1) return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return error;
  }
  return 0;
}

}  // namespace

Listener listen_at(const std::string& host, int64_t port) {
  std::string reason;
  const AddressList addresses = resolve(host, port, reason);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const int listener = bind_and_listen(*address);
    if (listener >= 0) {
      Listener result{FileDescriptor(listener), 0};
      result.port = port_of(listener);
      return result;
    }
    reason = std::strerror(errno);
    if (errno == EADDRINUSE) {
      throw CommError("launch", cat("the port of the rendezvous is taken: address=", host, ", port=", port), kPortRemedy);
    }
  }
  throw CommError("launch", cat("cannot listen for the other ranks: address=", host, ", port=", port, ", reason=", reason),
                  "MASTER_ADDR must name this machine on rank 0: give the name or number of one of its interfaces");
}

FileDescriptor connect_to(const std::string& host, int64_t port, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  std::string reason = "no answer";
  int last_error = 0;
  do {
    const AddressList addresses = resolve(host, port, reason);
    last_error = addresses ? 0 : -1;
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      FileDescriptor connection;
      last_error = try_connect(*address, std::max(left, std::chrono::milliseconds(50)), connection);
      if (last_error == 0) return connection;
      reason = std::strerror(last_error);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // rank 0 may not have got there yet
  } while (Clock::now() < deadline);
  const bool refused = last_error == ECONNREFUSED;
  throw CommError(
      "launch",
      cat(last_error == -1 ? "the host of rank 0 is not known"
          : refused        ? "rank 0 does not listen"
                           : "the host of rank 0 cannot be reached",
          ": address=", host, ", port=", port, ", waited_s=", static_cast<double>(timeout.count()) / 1000, ", reason=", reason),
      last_error == -1 ? "Correct MASTER_ADDR"
      : refused        ? "Look at rank 0's output: did it start? MASTER_ADDR and MASTER_PORT must be the same on all"
                       : "Check MASTER_ADDR, the network between the nodes and its firewall");
}

std::string reach(const std::string& host, int64_t port, std::chrono::milliseconds timeout) {
  const FileDescriptor connection = connect_to(host, port, timeout);
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  getsockname(connection.get(), reinterpret_cast<sockaddr*>(&local), &length);
  return address_text(reinterpret_cast<const sockaddr*>(&local));
}

std::string interface_address(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) all = nullptr;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  std::vector<std::string> names;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6)) continue;
    if (entry->ifa_name == name) return address_text(entry->ifa_addr);
    if (names.empty() || names.back() != entry->ifa_name) names.emplace_back(entry->ifa_name);
  }
  throw CommError("launch", cat("this machine has no such network interface: GLOO_SOCKET_IFNAME=", name),
                  cat("Choose one of: ", join(names, ", "), "; or unset the variable"));
}

}  // namespace welkin::launch
