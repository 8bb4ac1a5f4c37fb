// SPDX-License-Identifier: Apache-2.0
// Each thing that can go wrong when ranks look for each other has words of its own.
#include "launch/sockets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace welkin::launch {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals
using testing::AllOf;
using testing::HasSubstr;

template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const CommError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Sockets, AListenerIsReachedFromLoopback) {
  const Listener listener = listen_at("127.0.0.1", 0);
  EXPECT_GT(listener.port, 0);
  EXPECT_EQ(reach("127.0.0.1", listener.port, 2s), "127.0.0.1");
}

TEST(Sockets, ATakenPortIsNamed) {
  const Listener listener = listen_at("127.0.0.1", 0);
  EXPECT_THAT(error_of([&] { listen_at("127.0.0.1", listener.port); }),
              AllOf(HasSubstr("the port of the rendezvous is taken: address=127.0.0.1, port="), HasSubstr("MASTER_PORT")));
}

TEST(Sockets, AnAddressOfAnotherMachineIsRefused) {
  EXPECT_THAT(error_of([] { listen_at("192.0.2.1", 0); }), HasSubstr("cannot listen for the other ranks: address=192.0.2.1"));
}

TEST(Sockets, ASilentPortIsNotAnUnknownHost) {
  int64_t port = 0;
  { port = listen_at("127.0.0.1", 0).port; }
  EXPECT_THAT(error_of([&] { reach("127.0.0.1", port, 200ms); }), AllOf(HasSubstr("rank 0 does not listen: address=127.0.0.1"),
                                                                        HasSubstr("waited_s=0.2, reason=Connection refused")));
  EXPECT_THAT(
      error_of([] { reach("no-such-host.invalid", 1, 200ms); }),
      AllOf(HasSubstr("the host of rank 0 is not known: address=no-such-host.invalid"), HasSubstr("Correct MASTER_ADDR")));
}

TEST(Sockets, AMissingInterfaceListsThoseThatExist) {
  EXPECT_EQ(interface_address("lo"), "127.0.0.1");
  EXPECT_THAT(error_of([] { interface_address("ib7"); }),
              AllOf(HasSubstr("no such network interface: GLOO_SOCKET_IFNAME=ib7"), HasSubstr("lo")));
}

}  // namespace
}  // namespace welkin::launch
