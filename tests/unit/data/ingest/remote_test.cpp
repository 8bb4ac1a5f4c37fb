// SPDX-License-Identifier: Apache-2.0
// The two sides of the pipes. The child is a shell that says what the test wants, or a thread that serves the fake component.
#include "data/ingest/source/remote.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "data/ingest/source/component.h"
#include "data/ingest/source/remote_protocol.h"

namespace welkin::data::ingest::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsNull;

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  return ends;
}

int opens_anything(const char*, int, welkin_ingest_source** out, char*, int64_t) {
  static int source = 0;
  *out = reinterpret_cast<welkin_ingest_source*>(&source);
  return 0;
}
void closes(welkin_ingest_source*) {}
int counts_seven(welkin_ingest_source*, welkin_ingest_counts* out, char*, int64_t) {
  *out = {.num_variables = 7, .num_grids = 8, .num_planes = 9};
  return 0;
}
int fails(welkin_ingest_source*, int64_t, float*, int64_t, char* error, int64_t) {
  std::strcpy(error, "no such plane");
  return 4;
}

RemoteReply receive_reply(int from, std::span<std::byte> results) {
  RemoteReply reply;
  EXPECT_TRUE(receive_all(from, std::as_writable_bytes(std::span(&reply, 1))));
  EXPECT_EQ(reply.bytes, static_cast<int64_t>(results.size()));
  EXPECT_TRUE(receive_all(from, results));
  return reply;
}

TEST(RemoteTest, ServesAComponentUntilItsInputEnds) {
  welkin_ingest_api api{};  // without what nobody asks for here
  api.abi = WELKIN_INGEST_ABI;
  api.versions = "fake 1";
  api.open = opens_anything, api.close = closes;
  api.scan = counts_seven, api.read_plane = fails;
  const auto input = make_pipe(), output = make_pipe();
  rlimit before{}, after{};
  ASSERT_EQ(getrlimit(RLIMIT_CPU, &before), 0);
  int code = -1;
  std::vector<int64_t> allowed;
  std::jthread server(
      [&] { code = serve_component(Component(api), input[0], output[1], [&](int64_t seconds) { allowed.push_back(seconds); }); });
  std::string versions(6, ' ');
  receive_reply(output[0], std::as_writable_bytes(std::span(versions)));
  EXPECT_EQ(versions, "fake 1");
  const std::string path = "/a.grib";
  const auto ask = [&](RemoteRequest request) { send_all(input[1], std::as_bytes(std::span(&request, 1))); };
  ask({.call = RemoteCall::Open, .second = 7});
  send_all(input[1], std::as_bytes(std::span(path)));
  EXPECT_EQ(receive_reply(output[0], {}).code, 0);
  ask({.call = RemoteCall::Scan});
  welkin_ingest_counts counts{};
  EXPECT_EQ(receive_reply(output[0], std::as_writable_bytes(std::span(&counts, 1))).code, 0);
  EXPECT_EQ(counts.num_planes, 9);
  ask({.call = RemoteCall::ReadPlane, .first = 3, .second = 100});
  const RemoteReply failed = receive_reply(output[0], {});
  EXPECT_EQ(failed.code, 4);
  EXPECT_STREQ(failed.error, "no such plane");
  close(input[1]);
  server.join();
  EXPECT_EQ(code, 0);
  EXPECT_THAT(allowed, ElementsAre(4, 4, 4));
  ASSERT_EQ(getrlimit(RLIMIT_CPU, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_cur) << "serving limits the process that serves, and here that is the test";
  for (const int end : {input[0], output[0], output[1]}) close(end);
}

TEST(RemoteTest, WhatCannotServeIsNotUsed) {
  EXPECT_THAT(RemoteComponent::start("/no/such/program", "lib.so"), IsNull());
  EXPECT_THAT(RemoteComponent::start("/bin/true", "lib.so"), IsNull());
}

}  // namespace
}  // namespace welkin::data::ingest::tests
