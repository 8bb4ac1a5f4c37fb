// SPDX-License-Identifier: Apache-2.0
// The memory that members share: who may open it, what is refused, and how a member's end shows.
#include "parallel/shared_memory/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <stdexcept>

namespace welkin::parallel {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr SegmentShape kPair{.members = 2, .buffer_bytes = 4096};

TEST(Segment, IsTheSameMemoryForAllMembers) {
  const Segment first(kPair), second(first.place(), kPair, 1);
  std::strcpy(reinterpret_cast<char*>(first.buffer(0, 3)), "from the first");
  EXPECT_STREQ(reinterpret_cast<char*>(second.buffer(0, 3)), "from the first");
  EXPECT_STREQ(reinterpret_cast<char*>(second.buffer(0, 2)), "");  // the other one of the two
}

TEST(Segment, MembersGreetEachOther) {
  Segment first(kPair), second(first.place(), kPair, 1);
  second.greet(17);
  EXPECT_EQ(first.greeting_of(1), 17U);
  EXPECT_EQ(first.greeting_of(0), 0U);
}

TEST(Segment, OfAnotherNonceIsRefused) {
  const Segment first(kPair);
  SegmentPlace place = first.place();
  ++place.nonce[1];
  EXPECT_THAT([&] { Segment(place, kPair, 1); }, ThrowsMessage<std::runtime_error>(HasSubstr("is not the first member's")));
}

TEST(Segment, OfAnotherShapeIsRefused) {
  const Segment first(kPair);
  for (const SegmentShape& shape : {SegmentShape{.members = 3, .buffer_bytes = 4096}, {.members = 2, .buffer_bytes = 8192}}) {
    EXPECT_THAT([&] { Segment(first.place(), shape, 1); },
                ThrowsMessage<std::runtime_error>(HasSubstr("is not the first member's")));
  }
}

TEST(Segment, OfAProcessThatIsNotSeenIsRefused) {
  EXPECT_THAT([] { Segment({.process = 1 << 30, .descriptor = 5}, kPair, 1); },
              ThrowsMessage<std::runtime_error>(HasSubstr("that of the first member cannot be opened: No such file")));
  EXPECT_THAT([] { Segment({.process = getpid(), .descriptor = -1}, kPair, 1); },
              ThrowsMessage<std::runtime_error>(HasSubstr("cannot be opened")));
}

TEST(Segment, WhatIsNoSegmentIsRefused) {
  const FileDescriptor other = open_file("/proc/self/exe", O_RDONLY);
  EXPECT_THAT([&] { Segment({.process = getpid(), .descriptor = other.get()}, kPair, 1); },
              testing::Throws<std::runtime_error>());
}

TEST(Segment, WithoutAShapeIsRefused) {
  for (const SegmentShape& shape : {SegmentShape{.members = 1, .buffer_bytes = 4096}, {.members = 2, .buffer_bytes = 1000}}) {
    EXPECT_THAT([&] { Segment refused(shape); }, ThrowsMessage<std::runtime_error>(HasSubstr("no shape: members=")));
  }
}

// A part of a buffer without a cache line would be divided by.
TEST(Segment, TooSmallForItsMembersIsRefused) {
  const auto is_refused = [](const SegmentShape& shape) {
    EXPECT_THAT([&] { Segment refused(shape); }, ThrowsMessage<std::runtime_error>(HasSubstr("no shape: members=")));
  };
  is_refused({.members = 33, .buffer_bytes = 4096});
  is_refused(SegmentShape::of_members(256));
  is_refused(SegmentShape::of_members(1000));
  for (const int64_t members : {2, 32, 128, 192}) EXPECT_NO_THROW(Segment(SegmentShape::of_members(members))) << members;
}

TEST(Segment, HasOneMemberAtAPlace) {
  const Segment first(kPair), second(first.place(), kPair, 1);
  EXPECT_THAT([&] { Segment(first.place(), kPair, 1); },
              ThrowsMessage<std::runtime_error>(HasSubstr("a member's place is taken")));
}

// Full memory is an error when the segment is made.
TEST(Segment, WithoutMemoryIsRefused) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 8192, .rlim_max = before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THAT([] { Segment refused(kPair); }, ThrowsMessage<std::runtime_error>(HasSubstr("it cannot have its size")));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
}

TEST(Segment, ShowsWhoIsGone) {
  const Segment first(kPair);
  EXPECT_TRUE(first.is_gone(1));  // not there yet
  auto second = std::make_unique<Segment>(first.place(), kPair, 1);
  EXPECT_FALSE(first.is_gone(1));
  EXPECT_FALSE(second->is_gone(0));
  second.reset();
  EXPECT_TRUE(first.is_gone(1));
}

TEST(Segment, IsBoundedForManyMembers) {
  for (const int64_t members : {2, 8, 64, 1024}) {
    const SegmentShape shape = SegmentShape::of_members(members);
    EXPECT_EQ(shape.buffer_bytes % 64, 0);
    EXPECT_LE(2 * members * shape.buffer_bytes, SegmentShape::kMostBytes);
  }
}

}  // namespace
}  // namespace welkin::parallel
