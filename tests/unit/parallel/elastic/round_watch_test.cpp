// SPDX-License-Identifier: Apache-2.0
// A rank's watch over a board that this test serves, as the launcher of an elastic job would.
#include "parallel/elastic/round_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "launch/elastic/job_board.h"
#include "launch/sockets.h"
#include "parallel/elastic/elastic_member.h"
#include "parallel/elastic/open_connections.h"

namespace welkin::parallel {
namespace {

using launch::RoundState;

template <typename Condition>
bool comes_true(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < until) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// A board, and a connection of the network whose other end only listens.
struct WatchedRound : testing::Test {
  WatchedRound() {
    launch::Listener listener = launch::listen_at("127.0.0.1", 0);
    place = {.host = "127.0.0.1", .port = listener.port, .listener = dup(listener.socket.get()), .secret = "0123456789abcdef"};
    board = make_store_board(place);
    place.listener = -1;
  }

  bool is_readable_end(const FileDescriptor& socket) const {
    char byte = 0;
    return recv(socket.get(), &byte, 1, MSG_DONTWAIT) == 0;  // the end of the stream
  }

  launch::BoardPlace place;
  std::unique_ptr<launch::JobBoard> board;
  launch::Listener partner = launch::listen_at("127.0.0.1", 0);
  launch::Round round{
      .number = 2, .note = "", .members = {{.node = 0, .local = 0, .start = 0}, {.node = 0, .local = 1, .start = 1}}};
};

TEST_F(WatchedRound, IsLeftWhenItCloses) {
  const FileDescriptor before = launch::connect_to("127.0.0.1", partner.port, std::chrono::seconds(5));
  board->set(launch::kNowKey, launch::now_text(2, RoundState::Open));
  RoundWatch watch(place, round, round.members[1]);
  const FileDescriptor in_round = launch::connect_to("127.0.0.1", partner.port, std::chrono::seconds(5));
  board->set(launch::kNowKey, launch::now_text(2, RoundState::Requested));
  EXPECT_TRUE(comes_true([&] { return watch.is_requested(); }));
  EXPECT_FALSE(watch.is_over());
  EXPECT_FALSE(is_readable_end(in_round));
  board->set(launch::kNowKey, launch::now_text(2, RoundState::Closing));
  EXPECT_TRUE(comes_true([&] { return watch.is_over(); }));
  EXPECT_TRUE(comes_true([&] { return is_readable_end(in_round); }));
  EXPECT_FALSE(is_readable_end(before));
  EXPECT_TRUE(board->read(launch::seen_key(2, "0.1.1")));
  const FileDescriptor late = launch::connect_to("127.0.0.1", partner.port, std::chrono::seconds(5));
  EXPECT_TRUE(comes_true([&] { return is_readable_end(late); }));  // of a call that was under way
}

// A connection that was open before, and whose descriptor one of the round has now.
TEST_F(WatchedRound, ADescriptorThatIsUsedAgainIsNoOldConnection) {
  FileDescriptor old = launch::connect_to("127.0.0.1", partner.port, std::chrono::seconds(5));
  const int number = old.get();
  RoundWatch watch(place, round, round.members[0]);
  old = FileDescriptor();
  const FileDescriptor in_round = launch::connect_to("127.0.0.1", partner.port, std::chrono::seconds(5));
  ASSERT_EQ(in_round.get(), number);
  watch.end();
  EXPECT_TRUE(comes_true([&] { return is_readable_end(in_round); }));
}

TEST_F(WatchedRound, IsOverWhenAnotherHasBegun) {
  board->set(launch::kNowKey, launch::now_text(3, RoundState::Open));
  const RoundWatch watch(place, round, round.members[0]);
  EXPECT_TRUE(comes_true([&] { return watch.is_over(); }));
}

TEST_F(WatchedRound, AMemberWaitsForTheRoundThatNamesIt) {
  launch::RankInfo started;
  started.master_address = place.host;
  started.master_port = place.port;
  started.elastic_id = "0.1.1";
  started.local_rank = 1;
  started.world_size = 4;
  ElasticMember member(started, place.secret, std::chrono::seconds(5));
  member.say_hello({4, 2, 1});
  EXPECT_EQ(board->read(launch::kSizesKey), "4 2 1");
  EXPECT_TRUE(board->read(launch::hello_key("0.1.1")));
  launch::Round other = round;
  other.members.pop_back();
  board->set(launch::round_key(1), launch::text_of(other));
  board->set(launch::kNowKey, launch::now_text(1, RoundState::Open));
  std::thread leader([&] {
    StoreBoard own(place, std::chrono::seconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    own.set(launch::round_key(2), launch::text_of(round));
    own.set(launch::kNowKey, launch::now_text(2, RoundState::Open));
  });
  const auto found = member.await_round([] { return false; });
  leader.join();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 2);
  const launch::RankInfo there = place_in(*found, started, member.id());
  EXPECT_EQ(there.rank, 1);
  EXPECT_EQ(there.world_size, 2);
  EXPECT_EQ(there.local_rank, 1);
  EXPECT_EQ(there.attempt, 2);
  member.leave(*found, "a test");
  EXPECT_EQ(board->read(launch::left_key(2, "0.1.1")), "a test");
  board->set(launch::kEndKey, "0");
  EXPECT_FALSE(member.await_round([] { return false; }));
}

}  // namespace
}  // namespace welkin::parallel
