// SPDX-License-Identifier: Apache-2.0
// Ranks as threads that connect to each other, strangers at the port, and a rank that does not come.
#include "launch/doctor/link_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "core/error.h"
#include "launch/doctor/link_message.h"
#include "launch/sockets.h"

namespace welkin::launch {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals
using testing::HasSubstr;

LinkRequest request_of(int64_t rank, int64_t world, const Listener& listener) {
  LinkRequest request;
  request.place.rank = rank, request.place.world_size = world, request.place.num_nodes = 2;
  request.place.master_address = "127.0.0.1", request.place.master_port = listener.port;
  if (rank == 0) request.place.listen_descriptor = dup(listener.socket.get());
  request.host = "host" + std::to_string(rank);
  request.page_json = "page of " + request.host;
  request.timeout = 10s;
  return request;
}

Finding of_topic(const LinkReport& report, const std::string& topic) {
  for (const Finding& finding : report.findings) {
    if (finding.topic == topic) return finding;
  }
  ADD_FAILURE() << "no finding of " << topic;
  return {};
}

TEST(Links, OfFourRanksAreMeasuredBesideAStranger) {
  const Listener listener = listen_at("127.0.0.1", 0);
  LinkMessages stranger(connect_to("127.0.0.1", listener.port, 2s), "test", 2s);
  stranger.send("GET / HTTP/1.1");
  std::vector<std::thread> ranks;
  for (int64_t rank = 1; rank < 4; ++rank) ranks.emplace_back([&, rank] { test_links(request_of(rank, 4, listener)); });
  const LinkReport report = test_links(request_of(0, 4, listener));
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(of_topic(report, "ranks").found, "4 of 4 reached rank 0");
  EXPECT_EQ(of_topic(report, "ports").verdict, Verdict::Good);
  EXPECT_THAT(of_topic(report, "links").found, HasSubstr("MB/s"));
  EXPECT_EQ(of_topic(report, "clocks").verdict, Verdict::Good);
  EXPECT_EQ(report.hosts, (std::vector<std::string>{"host1", "host2", "host3"}));
  EXPECT_EQ(report.pages[2], "page of host3");
}

TEST(Links, NameARankThatDoesNotCome) {
  const Listener listener = listen_at("127.0.0.1", 0);
  LinkRequest first = request_of(0, 3, listener);
  first.timeout = 1500ms;
  std::thread second([&] { test_links(request_of(1, 3, listener)); });
  const LinkReport report = test_links(first);
  second.join();
  EXPECT_EQ(of_topic(report, "ranks").verdict, Verdict::Bad);
  EXPECT_EQ(of_topic(report, "ranks").found, "rank(s) 2 did not reach rank 0");
}

TEST(Links, OfOneRankAreNone) { EXPECT_TRUE(test_links({}).findings.empty()); }

TEST(LinkMessages, SayWhyTheyEnd) {
  const Listener listener = listen_at("127.0.0.1", 0);
  LinkMessages messages(connect_to("127.0.0.1", listener.port, 2s), "rank 7", 100ms);
  try {
    messages.receive(8);
    ADD_FAILURE() << "nobody sent anything";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the connection does not carry the test: peer=rank 7, reason=nothing within the time"));
  }
}

}  // namespace
}  // namespace welkin::launch
