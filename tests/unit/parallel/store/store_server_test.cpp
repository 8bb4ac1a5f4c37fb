// SPDX-License-Identifier: Apache-2.0
// The server as ranks and as strangers find it: who connects and says nothing, floods it, or plays back what a rank has said.
#include "parallel/store/store_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>
#include <vector>

#include "core/error.h"
#include "launch/sockets.h"
#include "parallel/store/store_client.h"

namespace welkin::parallel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* kHere = "127.0.0.1";

class StoreServerTest : public testing::Test {
 protected:
  void serve(StoreLimits limits = {}) {
    launch::Listener listener = launch::listen_at(kHere, 0);
    port_ = static_cast<uint16_t>(listener.port);
    server_ = std::make_unique<StoreServer>(std::move(listener.socket), key_, limits);
  }
  StoreClient client(std::chrono::milliseconds timeout = 5s) { return {kHere, port_, key_, timeout}; }
  FileDescriptor stranger() { return launch::connect_to(kHere, port_, 5s); }
  void expect_strangers(int64_t count) {
    const auto until = std::chrono::steady_clock::now() + 5s;
    while (server_->strangers() < count && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(server_->strangers(), count);
  }
  void expect_service() {
    StoreClient asks = client();
    asks.call({.kind = StoreCall::Set, .texts = {"alive", "yes"}});
    EXPECT_EQ(asks.call({.kind = StoreCall::Get, .number = 1000, .texts = {"alive"}}).texts.at(0), "yes");
  }

  JobKey key_ = job_key("a secret of the job");
  uint16_t port_ = 0;
  std::unique_ptr<StoreServer> server_;
};

void say(const FileDescriptor& socket, std::string_view bytes) { send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }

// Until the other side closes, or `most` bytes have come.
std::string hear(const FileDescriptor& socket, size_t most) {
  std::string heard;
  while (heard.size() < most) {
    pollfd entry{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, 5000) != 1) return heard + " (still open)";
    char byte = 0;
    if (recv(socket.get(), &byte, 1, MSG_DONTWAIT) <= 0) return heard;
    heard += byte;
  }
  return heard;
}

TEST_F(StoreServerTest, RanksShareItsValues) {
  serve();
  StoreClient one = client(), other = client();
  one.call({.kind = StoreCall::Set, .texts = {"a", std::string(100'000, 'v')}});
  EXPECT_EQ(other.call({.kind = StoreCall::Get, .number = 0, .texts = {"a"}}).texts.at(0), std::string(100'000, 'v'));
  expect_strangers(0);
}

TEST_F(StoreServerTest, ARankWaitsForAnother) {
  serve();
  std::thread later([&] {
    StoreClient sets = client();
    std::this_thread::sleep_for(50ms);
    sets.call({.kind = StoreCall::Add, .number = 2, .texts = {"n"}});
  });
  StoreClient waits = client();
  EXPECT_EQ(waits.call({.kind = StoreCall::Get, .number = 10'000, .texts = {"n"}}).texts.at(0), "2");
  later.join();
  EXPECT_EQ(waits.call({.kind = StoreCall::Wait, .number = 20, .texts = {"never"}}).kind, StoreCall::Timeout);
  EXPECT_EQ(waits.call({.kind = StoreCall::Check, .texts = {"n"}}).number, 1);  // the connection is as good as before
}

TEST_F(StoreServerTest, ManyRanksCount) {
  serve();
  std::vector<std::thread> ranks;
  for (int i = 0; i < 40; ++i) {
    ranks.emplace_back([&] {
      StoreClient counts = client(20s);
      for (int k = 0; k < 20; ++k) counts.call({.kind = StoreCall::Add, .number = 1, .texts = {"n"}});
      counts.call({.kind = StoreCall::Set, .texts = {"done", ""}});
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(client().call({.kind = StoreCall::Add, .number = 0, .texts = {"n"}}).number, 800);
}

TEST_F(StoreServerTest, AnotherSecretIsRefusedOnBothSides) {
  serve();
  try {
    StoreClient other(kHere, port_, job_key("another secret of a job"), 5s);
    ADD_FAILURE() << "it was heard";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not know this process"));
    EXPECT_THAT(error.what(), HasSubstr("same WELKIN_JOB_SECRET"));
  }
  expect_strangers(StoreClient::kAttempts);
  expect_service();
}

TEST_F(StoreServerTest, ACallerThatIsClosedUnreadKnocksAgain) {
  launch::Listener listener = launch::listen_at(kHere, 0);
  port_ = static_cast<uint16_t>(listener.port);
  std::thread floods([this, &listener] {
    for (int i = 0; i < 2; ++i) {
      pollfd entry{.fd = listener.socket.get(), .events = POLLIN, .revents = 0};
      poll(&entry, 1, 5000);
      const FileDescriptor closed_unread(accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
    server_ = std::make_unique<StoreServer>(std::move(listener.socket), key_);
  });
  EXPECT_NO_THROW(client().call({.kind = StoreCall::Count}));
  floods.join();
}

TEST_F(StoreServerTest, WhoLooksAndSaysNothingIsNoStranger) {
  serve();
  stranger();
  expect_service();
  expect_strangers(0);
}

TEST_F(StoreServerTest, AStrangerLearnsNothing) {
  serve();
  for (const std::string text : {"GET / HTTP/1.0\r\n\r\n", "W", "WELKINX1", "\x16\x03\x01"}) {
    const FileDescriptor socket = stranger();
    say(socket, text);
    shutdown(socket.get(), SHUT_WR);
    EXPECT_EQ(hear(socket, 100), "");
  }
  expect_strangers(4);
  expect_service();
}

TEST_F(StoreServerTest, ALongFirstMessageIsNotBelieved) {
  serve();
  const FileDescriptor socket = stranger();
  say(socket, std::string(kGreeting) + std::string(sizeof(Nonce), 'n'));
  EXPECT_EQ(hear(socket, sizeof(Nonce)).size(), sizeof(Nonce));
  say(socket, std::string("\xff\xff\xff\xff") + std::string(1000, 'x'));
  EXPECT_EQ(hear(socket, 100), "");
  expect_strangers(1);
  expect_service();
}

// Byte for byte what a rank says to the server, said again.
TEST_F(StoreServerTest, WhatIsPlayedBackIsNotHeard) {
  serve();
  launch::Listener tap = launch::listen_at(kHere, 0);
  std::string recorded;
  std::thread between([&] {
    const FileDescriptor from(accept(tap.socket.get(), nullptr, nullptr));
    const FileDescriptor to = stranger();
    std::vector<pollfd> both{{from.get(), POLLIN, 0}, {to.get(), POLLIN, 0}};
    std::string buffer(4096, '\0');
    while (poll(both.data(), 2, 5000) > 0) {
      for (size_t side = 0; side < 2; ++side) {
        if (both[side].revents == 0) continue;
        const ssize_t got = recv(both[side].fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got <= 0) return;
        if (side == 0) recorded.append(buffer, 0, static_cast<size_t>(got));
        send(both[1 - side].fd, buffer.data(), static_cast<size_t>(got), MSG_NOSIGNAL);
      }
    }
  });
  {
    StoreClient rank(kHere, static_cast<uint16_t>(tap.port), key_, 5s);
    rank.call({.kind = StoreCall::Add, .number = 1, .texts = {"n"}});
  }
  between.join();
  const FileDescriptor socket = stranger();
  say(socket, recorded);
  EXPECT_LE(hear(socket, 100).size(), sizeof(Nonce));
  expect_strangers(1);
  EXPECT_EQ(client().call({.kind = StoreCall::Add, .number = 0, .texts = {"n"}}).number, 1);
}

TEST_F(StoreServerTest, AFloodOfSilentStrangersKeepsNobodyOut) {
  serve({.greeting = 60s, .strangers = 16});
  std::vector<FileDescriptor> flood;
  for (int i = 0; i < 200; ++i) {
    flood.push_back(stranger());
    say(flood.back(), "WELKINS1");
  }
  expect_service();
  EXPECT_GE(server_->strangers(), 180);
}

// All connect before any is served.
TEST_F(StoreServerTest, ManyRanksComeAtOnce) {
  constexpr int64_t kRanks = 320;
  serve(StoreLimits::of_job(kRanks));
  std::vector<FileDescriptor> ranks;
  for (int64_t rank = 0; rank < kRanks; ++rank) ranks.push_back(stranger());
  for (const FileDescriptor& rank : ranks) {
    say(rank, std::string(kGreeting) + std::string(sizeof(Nonce), 'n'));
    EXPECT_EQ(hear(rank, sizeof(Nonce)).size(), sizeof(Nonce));
  }
}

TEST_F(StoreServerTest, ASilentStrangerGoesWhenItsTimeIsOver) {
  serve({.greeting = 50ms});
  const FileDescriptor socket = stranger();
  say(socket, "WEL");
  EXPECT_EQ(hear(socket, 1), "");
  expect_strangers(1);
}

TEST_F(StoreServerTest, ItsEndIsSaidToRanks) {
  serve();
  StoreClient rank = client();
  server_.reset();
  try {
    rank.call({.kind = StoreCall::Count});
    ADD_FAILURE() << "somebody answers";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the store of the rendezvous is lost"));
  }
}

}  // namespace
}  // namespace welkin::parallel
