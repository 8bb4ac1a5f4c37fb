// SPDX-License-Identifier: Apache-2.0
// The collectives in shared memory, with threads as members: results for sizes around the buffer's, and how calls fail.
#include "parallel/shared_memory/shared_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <latch>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "shared_memory/call_error.h"

namespace welkin::parallel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct Member {
  Member(std::unique_ptr<Segment> memory, WaitLimits limits, std::vector<int64_t> processes = {})
      : segment(std::move(memory)), rounds(*segment, std::move(limits)), calls(rounds, std::move(processes)) {}

  std::unique_ptr<Segment> segment;
  Rounds rounds;
  SharedCalls calls;
};

using Processes = std::vector<int64_t>;

// Runs `body` for each member on a thread of its own. `processes`: what a member takes for the members'.
void on_members(
    int64_t members, const std::function<void(Member&, int64_t)>& body, WaitLimits limits = {.deadline = 30s},
    const std::function<Processes(int64_t)>& processes = [](int64_t) { return Processes{}; }) {
  const SegmentShape shape{.members = members, .buffer_bytes = 4096};
  std::vector<std::unique_ptr<Member>> all;
  all.push_back(std::make_unique<Member>(std::make_unique<Segment>(shape), limits, processes(0)));
  const SegmentPlace place = all[0]->segment->place();
  for (int64_t member = 1; member < members; ++member) {
    all.push_back(std::make_unique<Member>(std::make_unique<Segment>(place, shape, member), limits, processes(member)));
  }
  std::vector<std::jthread> threads;
  for (int64_t member = 0; member < members; ++member) {
    threads.emplace_back([&, member] { body(*all[static_cast<size_t>(member)], member); });
  }
}

template <typename T>
std::vector<T> values_of(int64_t member, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(static_cast<float>(i % 97 + 1) / 3.0F + static_cast<float>(member) / 7.0F);
  }
  return values;
}

template <typename T>
std::vector<T> sum_of(int64_t members, int64_t count) {
  std::vector<T> sum = values_of<T>(0, count);
  for (int64_t member = 1; member < members; ++member) {
    const std::vector<T> more = values_of<T>(member, count);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<T>(sum[i] + more[i]);
  }
  return sum;
}

template <typename T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

constexpr int64_t kCounts[] = {0, 1, 7, 255, 1024, 2047, 2048, 2049, 5000, 20'011};

template <typename T>
void check_sums(c10::ScalarType type, int64_t members) {
  on_members(members, [&](Member& own, int64_t place) {
    for (const int64_t count : kCounts) {
      std::vector<T> values = values_of<T>(place, count);
      own.calls.all_reduce(bytes(values), count, type, OrderedReduction::Sum);
      EXPECT_EQ(values, sum_of<T>(members, count)) << type << ", members " << members << ", count " << count;
    }
  });
}

TEST(SharedCalls, SumInTheOrderOfTheMembers) {
  for (const int64_t members : {2, 3, 5}) {
    check_sums<float>(c10::kFloat, members);
    check_sums<double>(c10::kDouble, members);
    check_sums<c10::BFloat16>(c10::kBFloat16, members);
    check_sums<c10::Half>(c10::kHalf, members);
    check_sums<int64_t>(c10::kLong, members);
  }
}

// Each member's part of a buffer is two cache lines.
TEST(SharedCalls, OfAsManyMembersAsABufferHas) { check_sums<float>(c10::kFloat, 32); }

TEST(SharedCalls, ScatterSums) {
  on_members(3, [](Member& own, int64_t place) {
    for (const int64_t count : kCounts) {
      std::vector<float> whole = values_of<float>(place, 3 * count), part(static_cast<size_t>(count));
      own.calls.reduce_scatter(bytes(part), bytes(whole), count, c10::kFloat, OrderedReduction::Sum);
      const std::vector<float> sum = sum_of<float>(3, 3 * count);
      EXPECT_EQ(part, std::vector<float>(sum.begin() + place * count, sum.begin() + (place + 1) * count)) << count;
    }
  });
}

TEST(SharedCalls, GreatestAndLeast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  on_members(3, [nan](Member& own, int64_t place) {
    const auto p = static_cast<float>(place);
    std::vector<float> greatest{p, -p, place == 1 ? nan : p}, least = greatest;
    own.calls.all_reduce(bytes(greatest), 3, c10::kFloat, OrderedReduction::Max);
    own.calls.all_reduce(bytes(least), 3, c10::kFloat, OrderedReduction::Min);
    EXPECT_EQ(greatest[0], 2);
    EXPECT_EQ(greatest[1], 0);
    EXPECT_EQ(least[0], 0);
    EXPECT_EQ(least[1], -2);
    EXPECT_TRUE(std::isnan(greatest[2]) && std::isnan(least[2]));
  });
}

TEST(SharedCalls, GatherAndTell) {
  on_members(3, [](Member& own, int64_t place) {
    for (const int64_t count : kCounts) {
      std::vector<int32_t> part = values_of<int32_t>(place, count), whole(static_cast<size_t>(3 * count));
      own.calls.all_gather(bytes(whole), bytes(part), 4 * count);
      for (int64_t member = 0; member < 3; ++member) {
        EXPECT_EQ(std::vector<int32_t>(whole.begin() + member * count, whole.begin() + (member + 1) * count),
                  values_of<int32_t>(member, count));
      }
      std::vector<int32_t> told = values_of<int32_t>(10 * place, count);
      own.calls.broadcast(bytes(told), 4 * count, count % 3);
      EXPECT_EQ(told, values_of<int32_t>(10 * (count % 3), count));
    }
  });
}

// Member a sends member b (a + 1) * (b + 2) * scale bytes; nothing where the scale is 0, or to member 2.
TEST(SharedCalls, ExchangeUnevenRuns) {
  const auto length = [](int64_t from, int64_t to, int64_t scale) { return to == 2 ? 0 : (from + 1) * (to + 2) * scale; };
  on_members(3, [&](Member& own, int64_t place) {
    for (const int64_t scale : {0, 1, 300, 3000}) {
      std::vector<int64_t> leaving, arriving;
      std::vector<uint8_t> in, expected;
      for (int64_t member = 0; member < 3; ++member) {
        leaving.push_back(length(place, member, scale));
        arriving.push_back(length(member, place, scale));
        for (int64_t i = 0; i < leaving.back(); ++i) in.push_back(static_cast<uint8_t>(i * 7 + 16 * place + member));
        for (int64_t i = 0; i < arriving.back(); ++i) expected.push_back(static_cast<uint8_t>(i * 7 + 16 * member + place));
      }
      std::vector<uint8_t> out(expected.size());
      own.calls.all_to_all(bytes(out), bytes(in), arriving, leaving);
      EXPECT_EQ(out, expected) << scale;
    }
  });
}

// Around the size from which members read, and no multiple of a cache line.
constexpr int64_t kLongCounts[] = {SharedCalls::kLeastRead / 12, SharedCalls::kLeastRead / 4, SharedCalls::kLeastRead / 4 + 1,
                                   700'001};

void check_long_messages(int64_t members, const std::function<Processes(int64_t)>& processes) {
  const auto check = [&](Member& own, int64_t place) {
    for (const int64_t count : kLongCounts) {
      std::vector<float> values = values_of<float>(place, count);
      own.calls.all_reduce(bytes(values), count, c10::kFloat, OrderedReduction::Sum);
      EXPECT_EQ(values, sum_of<float>(members, count)) << count;

      std::vector<float> whole = values_of<float>(place, members * count), part(static_cast<size_t>(count));
      own.calls.reduce_scatter(bytes(part), bytes(whole), count, c10::kFloat, OrderedReduction::Sum);
      const std::vector<float> sum = sum_of<float>(members, members * count);
      EXPECT_EQ(part, std::vector<float>(sum.begin() + place * count, sum.begin() + (place + 1) * count)) << count;

      std::ranges::copy(part, whole.begin() + place * count);  // gathered in its place
      own.calls.all_gather(bytes(whole), bytes(whole) + 4 * place * count, 4 * count);
      EXPECT_EQ(whole, sum) << count;
    }
  };
  on_members(members, check, {.deadline = 30s}, processes);
}

TEST(SharedCalls, ReadLongMessagesFromTheMembers) {
  for (const int64_t members : {2, 3}) {
    check_long_messages(members, [&](int64_t) { return Processes(static_cast<size_t>(members), ::getpid()); });
  }
}

constexpr int64_t kNoProcess = 1 << 30;

// As memory of a device's driver is, whose owner finds out.
TEST(SharedCalls, GoThroughBuffersWhereTheMemoryOfOneCannotBeRead) {
  check_long_messages(3, [](int64_t member) { return member == 1 ? Processes(3, kNoProcess) : Processes(3, ::getpid()); });
}

void sum(Member& own, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  own.calls.all_reduce(bytes(values), count, c10::kFloat, OrderedReduction::Sum);
}

TEST(SharedCalls, OfOtherSizesFail) {
  on_members(2, [](Member& own, int64_t place) {
    const std::string text = error_of([&] { sum(own, 3 + place); });
    EXPECT_THAT(text, testing::AnyOf(HasSubstr("makes another call, or one of another size"), HasSubstr("has failed")));
    EXPECT_THAT(error_of([&] { sum(own, 3); }), HasSubstr("an earlier call of the group has failed"));
  });
}

TEST(SharedCalls, OfOtherRunsFail) {
  on_members(2, [](Member& own, int64_t place) {
    std::vector<uint8_t> in(8), out(64);
    const int64_t expected = place == 0 ? 8 : 9;
    const std::string text = error_of([&] { own.calls.all_to_all(bytes(out), bytes(in), {expected, expected}, {4, 4}); });
    EXPECT_THAT(text, testing::AnyOf(HasSubstr("sends 4 bytes, and "), HasSubstr("has failed")));
  });
}

TEST(SharedCalls, FailWhereAMembersMemoryIsGone) {
  on_members(
      2,
      [](Member& own, int64_t) {
        EXPECT_THAT(error_of([&] { sum(own, SharedCalls::kLeastRead); }),
                    testing::AnyOf(HasSubstr("the memory of the member at place 1 cannot be read: No such process"),
                                   HasSubstr("the memory of the member at place 0 cannot be read: Bad address"),  // freed by then
                                   HasSubstr("the member at place 0 has failed")));
      },
      {.deadline = 30s},
      [](int64_t member) {
        return Processes{::getpid(), member == 0 ? kNoProcess : ::getpid()};
      });
}

TEST(SharedCalls, EndAtTheDeadline) {
  std::latch ended(1);
  on_members(2,
             [&](Member& own, int64_t place) {
               if (place == 0) {
                 EXPECT_THAT(error_of([&] { sum(own, 9); }), HasSubstr("Timed out waiting 300ms for the member at place 1"));
                 ended.count_down();
               } else {
                 ended.wait();
                 EXPECT_THAT(error_of([&] { sum(own, 9000); }), HasSubstr("makes another call"));
               }
             },
             {.deadline = 300ms});
}

TEST(SharedCalls, EndWhenTheMemberIsGone) {
  on_members(2, [](Member& own, int64_t place) {
    if (place == 0) {
      EXPECT_THAT(error_of([&] { sum(own, 9); }), HasSubstr("the member at place 1 has failed"));
    } else {
      own.segment->fail();
    }
  });
}

TEST(SharedCalls, EndWhenTheRanksHaveParted) {
  std::atomic<bool> is_over = false;
  on_members(2,
             [&](Member& own, int64_t place) {
               if (place == 0) {
                 EXPECT_THAT(error_of([&] { sum(own, 9); }), HasSubstr("the ranks have parted"));
               } else {
                 std::this_thread::sleep_for(50ms);
                 is_over = true;
               }
             },
             {.deadline = 30s, .is_over = [&] { return is_over.load(); }});
}

TEST(SharedCalls, EndWhenTheGroupIsClosed) {
  on_members(2, [](Member& own, int64_t place) {
    if (place != 0) return;
    std::jthread closing([&] {
      std::this_thread::sleep_for(50ms);
      own.rounds.stop();
    });
    EXPECT_THAT(error_of([&] { sum(own, 9); }), HasSubstr("the group has been closed"));
  });
}

// What a member has published before it left is there.
TEST(SharedCalls, ReadWhatOneWhoLeftHasPublished) {
  const SegmentShape shape{.members = 2, .buffer_bytes = 4096};
  Member first(std::make_unique<Segment>(shape), {.deadline = 30s});
  auto second =
      std::make_unique<Member>(std::make_unique<Segment>(first.segment->place(), shape, 1), WaitLimits{.deadline = 30s});
  std::vector<float> told{1, 2, 3}, heard(3);
  second->calls.broadcast(bytes(told), 12, 1);
  second.reset();
  first.calls.broadcast(bytes(heard), 12, 1);
  EXPECT_EQ(heard, told);
}

}  // namespace
}  // namespace welkin::parallel
