// SPDX-License-Identifier: Apache-2.0
#include "parallel/store/store_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/text.h"
#include "parallel/store/sealed_channel.h"
#include "parallel/store/store_message.h"
#include "parallel/store/store_table.h"

namespace welkin::parallel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kGreetingBytes = kGreeting.size() + sizeof(Nonce);
constexpr int kEventsAtOnce = 64;

// Every rank has several connections, so the limit on open files is raised as far as the system allows.
void allow_many_sockets() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

int system_needs(int result, const char* what) {
  if (result >= 0) return result;
  throw CommError("parallel", cat("the store of the rendezvous cannot be served: call=", what, ", reason=", std::strerror(errno)),
                  "Raise the limit of open files (ulimit -n)");
}

}  // namespace

struct StoreServer::Impl {
  struct Caller {
    FileDescriptor socket;
    Clock::time_point since = Clock::now();
    std::string in = {}, out = {};
    std::optional<SealedChannel> channel = {};
    bool is_member = false;                  // has shown that it has the key
    std::optional<StoreMessage> waits = {};  // a request that is not answered yet
    Clock::time_point waits_until = {};
    bool is_over = false;  // closed at the end of the loop, since events for it may be pending
  };

  Impl(FileDescriptor socket, const JobKey& job, StoreLimits most) : listener(std::move(socket)), key(job), limits(most) {
    allow_many_sockets();
    system_needs(fcntl(listener.get(), F_SETFL, fcntl(listener.get(), F_GETFL) | O_NONBLOCK), "fcntl");
    watch(listener.get(), &listener);
    watch(stop.get(), &stop);
    thread = std::thread([this] { serve(); });
  }
  ~Impl() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop.get(), &one, sizeof one);
    thread.join();
  }

  void watch(int fd, void* whose) {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = whose}};
    system_needs(epoll_ctl(events.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
  }
  static bool has_spoken(const Caller& caller) { return caller.channel || !caller.in.empty(); }
  void serve();
  int milliseconds_to_next() const;
  void accept_callers();
  void end(Caller& caller);
  void read_from(Caller& caller);
  void understand(Caller& caller);
  bool greet(Caller& caller);
  bool take_frame(Caller& caller);
  void obey(Caller& caller, StoreMessage request);
  void reply(Caller& caller, const StoreMessage& message);
  void write_to(Caller& caller);
  void answer_waiting();
  void end_late(Clock::time_point now);

  FileDescriptor listener;
  FileDescriptor events{system_needs(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")};
  FileDescriptor stop{system_needs(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")};
  JobKey key;
  StoreLimits limits;
  StoreTable table;
  std::list<Caller> callers;  // the oldest first
  size_t num_strangers = 0;
  std::atomic<int64_t> turned_away{0};
  std::thread thread;
};

// Time until the next caller's deadline; -1 without one.
int StoreServer::Impl::milliseconds_to_next() const {
  std::optional<Clock::time_point> next;
  for (const Caller& caller : callers) {
    if (caller.is_member && !caller.waits) continue;
    const auto until = caller.is_member ? caller.waits_until : caller.since + limits.greeting;
    next = std::min(next.value_or(until), until);
  }
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

void StoreServer::Impl::serve() {
  std::array<epoll_event, kEventsAtOnce> at_hand{};
  while (true) {
    const int count = epoll_wait(events.get(), at_hand.data(), kEventsAtOnce, milliseconds_to_next());
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = at_hand[static_cast<size_t>(i)];
      if (event.data.ptr == &stop) return;
      if (event.data.ptr == &listener) {
        accept_callers();
        continue;
      }
      auto& caller = *static_cast<Caller*>(event.data.ptr);
      if ((event.events & EPOLLOUT) != 0) write_to(caller);
      if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_from(caller);
    }
    end_late(Clock::now());
    callers.remove_if([](const Caller& caller) { return caller.is_over; });
  }
}

void StoreServer::Impl::accept_callers() {
  while (true) {
    FileDescriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (num_strangers >= limits.strangers) {
      const auto oldest =
          std::ranges::find_if(callers, [](const Caller& caller) { return !caller.is_member && !caller.is_over; });
      if (oldest != callers.end()) {
        if (!has_spoken(*oldest)) ++turned_away;  // its message could not be read in time
        end(*oldest);
      }
    }
    Caller& caller = callers.emplace_back(Caller{.socket = std::move(socket)});
    ++num_strangers;
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &caller}};
    if (epoll_ctl(events.get(), EPOLL_CTL_ADD, caller.socket.get(), &event) != 0) end(caller);
  }
}

// A caller that connects without sending anything does not count as a stranger.
void StoreServer::Impl::end(Caller& caller) {
  if (caller.is_over) return;
  caller.is_over = true;
  if (!caller.is_member) {
    --num_strangers;
    if (has_spoken(caller)) ++turned_away;
  }
  epoll_ctl(events.get(), EPOLL_CTL_DEL, caller.socket.get(), nullptr);
  shutdown(caller.socket.get(), SHUT_RDWR);
}

void StoreServer::Impl::read_from(Caller& caller) {
  std::array<char, 16384> buffer;
  while (!caller.is_over) {
    const ssize_t got = recv(caller.socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) return end(caller);
    caller.in.append(buffer.data(), static_cast<size_t>(got));
    understand(caller);  // after every piece, which bounds the memory
  }
}

void StoreServer::Impl::understand(Caller& caller) {
  if (!caller.channel && !greet(caller)) return;
  while (!caller.is_over && take_frame(caller)) {
  }
}

// True once the caller's nonce has arrived.
bool StoreServer::Impl::greet(Caller& caller) {
  const std::string_view said = std::string_view(caller.in).substr(0, kGreeting.size());
  if (said != kGreeting.substr(0, said.size())) {
    end(caller);
    return false;
  }
  if (caller.in.size() < kGreetingBytes) return false;
  Nonce theirs{};
  std::memcpy(theirs.data(), caller.in.data() + kGreeting.size(), theirs.size());
  caller.in.erase(0, kGreetingBytes);
  const Nonce ours = random_nonce();
  caller.channel.emplace(key, theirs, ours, ChannelSide::Server);
  caller.out.append(reinterpret_cast<const char*>(ours.data()), ours.size());
  write_to(caller);
  return true;
}

// True if there was a whole frame. An undecryptable frame ends the caller, as does a frame before the last one is answered.
bool StoreServer::Impl::take_frame(Caller& caller) {
  if (caller.in.size() < kFrameHeader) return false;
  const size_t length = frame_length(caller.in);
  if (length > (caller.is_member ? kMostFrameBytes : kMostFirstBytes) || caller.waits) {
    end(caller);
    return false;
  }
  if (caller.in.size() < kFrameHeader + length) return false;
  const std::optional<std::string> opened = caller.channel->open(std::string_view(caller.in).substr(kFrameHeader, length));
  const std::optional<StoreMessage> request = opened ? decode(*opened) : std::nullopt;
  if (!request) {
    end(caller);
    return false;
  }
  caller.in.erase(0, kFrameHeader + length);
  if (!caller.is_member) --num_strangers;
  caller.is_member = true;
  obey(caller, *request);
  return true;
}

void StoreServer::Impl::obey(Caller& caller, StoreMessage request) {
  const bool may_add = request.kind == StoreCall::Set || request.kind == StoreCall::Add || request.kind == StoreCall::CompareSet;
  if (const std::optional<StoreMessage> answer = table.answer(request)) {
    reply(caller, *answer);
  } else {
    const auto most = std::chrono::hours(24 * 365);
    const auto wait = std::chrono::milliseconds(std::max<int64_t>(request.number, 0));
    caller.waits_until = Clock::now() + std::min<std::chrono::milliseconds>(wait, most);
    caller.waits = std::move(request);
  }
  if (may_add) answer_waiting();
}

void StoreServer::Impl::answer_waiting() {
  for (Caller& caller : callers) {
    if (!caller.waits || caller.is_over) continue;
    if (const std::optional<StoreMessage> answer = table.answer(*caller.waits)) {
      caller.waits.reset();
      reply(caller, *answer);
    }
  }
}

void StoreServer::Impl::reply(Caller& caller, const StoreMessage& message) {
  caller.out += framed(caller.channel->seal(encode(message)));
  write_to(caller);
}

void StoreServer::Impl::write_to(Caller& caller) {
  while (!caller.out.empty() && !caller.is_over) {
    const ssize_t sent = send(caller.socket.get(), caller.out.data(), caller.out.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0) return end(caller);
    caller.out.erase(0, static_cast<size_t>(sent));
  }
  if (caller.is_over) return;
  epoll_event event{.events = caller.out.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT, .data = {.ptr = &caller}};
  epoll_ctl(events.get(), EPOLL_CTL_MOD, caller.socket.get(), &event);
}

void StoreServer::Impl::end_late(Clock::time_point now) {
  for (Caller& caller : callers) {
    if (caller.is_over) continue;
    if (!caller.is_member && now >= caller.since + limits.greeting) end(caller);
    if (caller.waits && now >= caller.waits_until) {
      caller.waits.reset();
      reply(caller, {.kind = StoreCall::Timeout});
    }
  }
}

StoreServer::StoreServer(FileDescriptor listener, const JobKey& key, StoreLimits limits)
    : impl_(std::make_unique<Impl>(std::move(listener), key, limits)) {}

StoreServer::~StoreServer() = default;

int64_t StoreServer::strangers() const { return impl_->turned_away; }

}  // namespace welkin::parallel
