// SPDX-License-Identifier: Apache-2.0
// Messages between members, with threads as members: more of them than mailboxes, in any order of waiting, and how they fail.
#include "parallel/shared_memory/shared_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include "shared_memory/call_error.h"

namespace welkin::parallel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

using Words = std::vector<int32_t>;

struct Correspondent {
  Correspondent(std::unique_ptr<Segment> memory, const WaitLimits& limits)
      : segment(std::move(memory)),
        messages(std::in_place, segment, limits,
                 std::vector<int64_t>(static_cast<size_t>(segment->shape().members), ::getpid())) {}

  uint32_t send(int64_t to, Words values) {
    const auto owner = std::make_shared<Words>(std::move(values));
    return messages->send(to, reinterpret_cast<const std::byte*>(owner->data()), bytes_of(*owner), owner);
  }
  // A message that is expected.
  struct Coming {
    std::shared_ptr<Words> words;
    uint32_t number = 0;
  };
  Coming expect(int64_t from, size_t count) {
    const auto words = std::make_shared<Words>(count);
    return {words, messages->receive(from, reinterpret_cast<std::byte*>(words->data()), bytes_of(*words), words)};
  }
  Words take(int64_t from, const Coming& coming) {
    messages->await_received(from, coming.number);
    return *coming.words;
  }
  Words receive(int64_t from, size_t count) { return take(from, expect(from, count)); }

  static int64_t bytes_of(const Words& values) { return static_cast<int64_t>(sizeof(int32_t) * values.size()); }

  std::shared_ptr<Segment> segment;
  std::optional<SharedMessages> messages;
};

std::vector<std::unique_ptr<Correspondent>> correspondents(int64_t count, const WaitLimits& limits = {.deadline = 30s}) {
  const SegmentShape shape{.members = count, .buffer_bytes = 4096};
  std::vector<std::unique_ptr<Correspondent>> all;
  all.push_back(std::make_unique<Correspondent>(std::make_unique<Segment>(shape), limits));
  for (int64_t member = 1; member < count; ++member) {
    all.push_back(std::make_unique<Correspondent>(std::make_unique<Segment>(all[0]->segment->place(), shape, member), limits));
  }
  return all;
}

// Message number `number` from one member to another: of any length, also none.
Words words_of(int64_t from, int64_t to, int64_t number) {
  std::minstd_rand random(static_cast<uint32_t>(1 + from + 10 * to + 100 * number));
  Words values(number % 7 == 3 ? 0 : random() % 3000);
  std::iota(values.begin(), values.end(), static_cast<int32_t>(random() % 1000));
  return values;
}

TEST(SharedMessages, ArriveInTheirOrderBetweenAllMembers) {
  constexpr int64_t kMembers = 3, kMessages = 300;
  const auto all = correspondents(kMembers);
  std::vector<std::jthread> threads;
  for (int64_t own = 0; own < kMembers; ++own) {
    threads.emplace_back([&, own] {
      Correspondent& member = *all[static_cast<size_t>(own)];
      for (int64_t number = 0; number < kMessages; ++number) {
        for (int64_t to = 0; to < kMembers; ++to) {
          if (to != own) member.send(to, words_of(own, to, number));
        }
      }
      for (int64_t number = 0; number < kMessages; ++number) {
        for (int64_t from = 0; from < kMembers; ++from) {
          if (from == own) continue;
          const Words expected = words_of(from, own, number);
          EXPECT_EQ(member.receive(from, expected.size()), expected) << from << " to " << own << ", " << number;
        }
      }
    });
  }
}

// Receives are posted ahead, and the last is needed first: those before it are taken, too.
TEST(SharedMessages, AreTakenInTheirOrderWhicheverIsAwaited) {
  const auto all = correspondents(2);
  std::vector<uint32_t> sent;
  std::vector<Correspondent::Coming> expected;
  for (int32_t i = 0; i < 5; ++i) sent.push_back(all[0]->send(1, {i, 10 * i}));
  for (int32_t i = 0; i < 5; ++i) expected.push_back(all[1]->expect(0, 2));
  EXPECT_FALSE(all[0]->messages->is_taken(1, sent[0]));
  EXPECT_EQ(all[1]->take(0, expected[2]), (Words{2, 20}));
  EXPECT_TRUE(all[0]->messages->is_taken(1, sent[2]));
  for (const size_t i : {4U, 0U, 1U, 3U}) {
    EXPECT_EQ(all[1]->take(0, expected[i]), (Words{static_cast<int32_t>(i), 10 * static_cast<int32_t>(i)}));
  }
  all[0]->messages->await_taken(1, sent.back());
}

// Each sends to the next one, expects something of the one before, and waits for its own message to be taken first.
TEST(SharedMessages, AreTakenByMembersThatWaitForTheirOwn) {
  constexpr int64_t kMembers = 3;
  const auto all = correspondents(kMembers);
  std::vector<std::jthread> threads;
  for (int64_t own = 0; own < kMembers; ++own) {
    threads.emplace_back([&, own] {
      Correspondent& member = *all[static_cast<size_t>(own)];
      const int64_t next = (own + 1) % kMembers, previous = (own + kMembers - 1) % kMembers;
      for (int32_t turn = 0; turn < 20; ++turn) {
        const uint32_t sent = member.send(next, {static_cast<int32_t>(own), turn});
        const Correspondent::Coming coming = member.expect(previous, 2);
        member.messages->await_taken(next, sent);
        EXPECT_EQ(member.take(previous, coming), (Words{static_cast<int32_t>(previous), turn}));
      }
    });
  }
}

// The sender does nothing more, and no message is lost.
TEST(SharedMessages, AreTakenThoughTheirSenderIsElsewhere) {
  const auto all = correspondents(2);
  for (int32_t i = 0; i < 1000; ++i) all[0]->send(1, {i});
  for (int32_t i = 0; i < 1000; ++i) EXPECT_EQ(all[1]->receive(0, 1), Words{i});
}

TEST(SharedMessages, AreKeptUntilTheyAreTakenAndNoLonger) {
  const auto all = correspondents(2);
  auto owner = std::make_shared<Words>(100, 7);
  const std::weak_ptr<Words> kept = owner;
  const auto* bytes = reinterpret_cast<const std::byte*>(owner->data());
  const uint32_t number = all[0]->messages->send(1, bytes, 400, std::move(owner));
  EXPECT_FALSE(kept.expired());
  EXPECT_EQ(all[1]->receive(0, 100), Words(100, 7));
  all[0]->messages->await_taken(1, number);
  EXPECT_TRUE(kept.expired());
}

// A member that ends waits for those who still need what it has sent.
TEST(SharedMessages, OfOneThatEndsAreTakenBefore) {
  const auto all = correspondents(2);
  for (int32_t i = 0; i < 100; ++i) all[0]->send(1, Words(1000, i));
  std::jthread ending([&] { all[0]->messages.reset(); });
  std::this_thread::sleep_for(30ms);
  for (int32_t i = 0; i < 100; ++i) EXPECT_EQ(all[1]->receive(0, 1000), Words(1000, i));
}

TEST(SharedMessages, OfOneThatFailedAreRefused) {
  const auto all = correspondents(2);
  all[0]->send(1, {1, 2, 3});
  all[0]->segment->fail();
  all[0]->messages.reset();  // does not wait
  EXPECT_THAT(error_of([&] { all[1]->receive(0, 3); }), HasSubstr("the member at place 0 has failed"));
  EXPECT_THAT(error_of([&] { all[1]->receive(0, 3); }), HasSubstr("the member at place 0 has failed"));
}

TEST(SharedMessages, OfAnotherLengthFail) {
  const auto all = correspondents(2);
  const uint32_t number = all[0]->send(1, {1, 2, 3});
  EXPECT_THAT(error_of([&] { all[1]->receive(0, 4); }), HasSubstr("the member at place 0 sends 12 bytes, and 16 are expected"));
  EXPECT_THAT(error_of([&] { all[0]->messages->await_taken(1, number); }), HasSubstr("the member at place 1 has failed"));
}

TEST(SharedMessages, EndAtTheDeadlineAndWhenTheRanksHaveParted) {
  const auto late = correspondents(2, {.deadline = 50ms});
  EXPECT_THAT(error_of([&] { late[0]->receive(1, 3); }), HasSubstr("Timed out waiting 50ms for the member at place 1"));
  const auto parted = correspondents(2, {.deadline = 30s, .is_over = [] { return true; }});
  EXPECT_THAT(error_of([&] { parted[0]->receive(1, 3); }), HasSubstr("the ranks have parted"));
}

TEST(SharedMessages, EndWhenTheMemberIsGone) {
  auto all = correspondents(2);
  all[1].reset();
  EXPECT_THAT(error_of([&] { all[0]->receive(1, 3); }), HasSubstr("the member at place 1 is gone"));
}

// As memory of a device's driver is, whose owner finds out: a copy leaves. Here the owner takes itself for no process.
TEST(SharedMessages, GoFromMemoryThatOthersCannotRead) {
  const SegmentShape shape{.members = 2, .buffer_bytes = 4096};
  const auto first = std::make_shared<Segment>(shape);
  const auto second = std::make_shared<Segment>(first->place(), shape, 1);
  SharedMessages sender(first, {.deadline = 30s}, {1 << 30, ::getpid()}),
      receiver(second, {.deadline = 30s}, {::getpid(), ::getpid()});
  Words source(20'000, 5), values(source.size());
  sender.send(1, reinterpret_cast<const std::byte*>(source.data()), Correspondent::bytes_of(source), nullptr);
  std::ranges::fill(source, 6);
  receiver.await_received(
      0, receiver.receive(0, reinterpret_cast<std::byte*>(values.data()), Correspondent::bytes_of(values), nullptr));
  EXPECT_EQ(values, Words(source.size(), 5));
}

}  // namespace
}  // namespace welkin::parallel
