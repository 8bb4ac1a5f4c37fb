// SPDX-License-Identifier: Apache-2.0
#include "parallel/store/store_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "core/error.h"
#include "core/text.h"
#include "launch/sockets.h"

namespace welkin::parallel {
namespace {

using Clock = std::chrono::steady_clock;

// Waits until a socket can be read or written; false when the time is over.
bool is_ready(int socket, short events, Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd entry{.fd = socket, .events = events, .revents = 0};
    const int count = poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return true;  // the next call reports the error
    if (count == 0 && left <= 0) return false;
  }
}

}  // namespace

StoreClient::StoreClient(const std::string& host, uint16_t port, const JobKey& key, std::chrono::milliseconds timeout)
    : where_(cat(host, ":", port)), timeout_(timeout) {
  const auto until = Clock::now() + timeout_;
  for (int attempt = 1;; ++attempt) {
    socket_ = launch::connect_to(host, port, timeout);
    try {
      greet(key);
      return;
    } catch (const CommError&) {
      if (!was_closed_ || attempt == kAttempts || Clock::now() >= until) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5 << attempt));
  }
}

void StoreClient::greet(const JobKey& key) {
  const int on = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const Nonce ours = random_nonce();
  Nonce theirs{};
  was_closed_ = false;
  send_all(cat(kGreeting, std::string_view(reinterpret_cast<const char*>(ours.data()), ours.size())));
  const std::string answer = receive(theirs.size(), Clock::now() + timeout_);
  std::memcpy(theirs.data(), answer.data(), theirs.size());
  channel_.emplace(key, ours, theirs, ChannelSide::Client);
  call({.kind = StoreCall::Count});
}

StoreMessage StoreClient::call(const StoreMessage& request) {
  const bool waits = request.kind == StoreCall::Get || request.kind == StoreCall::Wait;
  const auto until = Clock::now() + timeout_ + std::chrono::milliseconds(waits ? std::max<int64_t>(request.number, 0) : 0);
  send_all(framed(channel_->seal(encode(request))));
  const size_t length = frame_length(receive(kFrameHeader, until));
  if (length > kMostFrameBytes) lose("its answer is too long");
  const std::optional<std::string> opened = channel_->open(receive(length, until));
  std::optional<StoreMessage> reply = opened ? decode(*opened) : std::nullopt;
  if (!reply) lose("its answer does not open");
  is_known_ = true;
  if (reply->kind == StoreCall::Refused) lose(reply->texts.empty() ? "it refuses the call" : reply->texts.front());
  return *std::move(reply);
}

void StoreClient::send_all(std::string_view bytes) {
  const auto until = Clock::now() + timeout_;
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno == EAGAIN && !is_ready(socket_.get(), POLLOUT, until)) lose("it takes nothing");
    if (errno != EAGAIN && errno != EINTR) lose_closed(std::strerror(errno));
  }
}

std::string StoreClient::receive(size_t bytes, Clock::time_point until) {
  std::string text(bytes, '\0');
  for (size_t have = 0; have < bytes;) {
    if (!is_ready(socket_.get(), POLLIN, until)) lose("it does not answer");
    const ssize_t got = recv(socket_.get(), text.data() + have, bytes - have, MSG_DONTWAIT);
    if (got == 0) lose_closed("it has closed the connection");
    if (got < 0 && errno != EAGAIN && errno != EINTR) lose_closed(std::strerror(errno));
    have += static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
  return text;
}

void StoreClient::lose_closed(const std::string& reason) {
  was_closed_ = true;
  lose(reason);
}

void StoreClient::lose(const std::string& reason) const {
  if (is_known_)
    throw CommError("parallel", cat("the store of the rendezvous is lost: at=", where_, ", reason=", reason),
                    "Look at the output of rank 0, which serves it");
  throw CommError("parallel", cat("the store of the rendezvous does not know this process: at=", where_, ", reason=", reason),
                  "Every process of a job needs the same WELKIN_JOB_SECRET, or none; else another program listens there");
}

}  // namespace welkin::parallel
