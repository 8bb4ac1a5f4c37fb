// SPDX-License-Identifier: Apache-2.0
// Every collective in real processes: values, uneven parts, strided tensors, groups of a mesh.
#include "parallel/comm/collectives.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "parallel/shard/split.h"
#include "rank_processes.h"

namespace welkin::parallel {
namespace {

GroupMembers everybody(const Connection& connection) {
  return Mesh("dp", {.dp_replicate = connection.world_size()}).group_of(connection.rank(), kDp);
}

// Rank r's values: distinct for every rank and element.
at::Tensor ramp(int64_t rank, at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) {
  return (at::arange(c10::multiply_integers(shape), at::kDouble) + 1000.0 * static_cast<double>(rank)).view(shape).to(dtype);
}

void check_reductions(const Group& all) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong}) {
    const at::Tensor mine = at::full({3, 5}, all.group_rank() + 1, dtype);
    const int64_t n = all.size();
    EXPECT_TRUE(at::equal(all_reduce(all, mine), at::full({3, 5}, n * (n + 1) / 2, dtype))) << dtype;
    EXPECT_TRUE(at::equal(all_reduce(all, mine, Reduction::Max), at::full({3, 5}, n, dtype))) << dtype;
  }
}

// A reduction of a strided view returns the sum and leaves the view alone; in place it is refused.
void check_strided(const Group& all) {
  const at::Tensor whole = ramp(all.group_rank(), {4, 6});
  const at::Tensor view = whole.t();
  at::Tensor expected = at::zeros({6, 4});
  for (int64_t rank = 0; rank < all.size(); ++rank) expected += ramp(rank, {4, 6}).t();
  EXPECT_TRUE(at::equal(all_reduce(all, view), expected));
  EXPECT_TRUE(at::equal(whole, ramp(all.group_rank(), {4, 6})));
  EXPECT_THROW(all_reduce_in_place(all, view), InternalError);
}

void check_uneven_parts(const Group& all, at::ScalarType dtype) {
  const Lengths lengths = balanced_split(2 * all.size() + 1, all.size());
  const int64_t total = 2 * all.size() + 1;
  const at::Tensor whole = ramp(0, {2, total, 3}, dtype);
  const auto parts = whole.split_with_sizes(lengths, 1);
  const at::Tensor mine = parts[static_cast<size_t>(all.group_rank())];
  EXPECT_TRUE(at::equal(all_gather(all, mine, 1, lengths), whole));
  EXPECT_TRUE(at::equal(reduce_scatter(all, whole, 1, lengths), mine * all.size()));
}

// Heads out, tokens in: each member gets all tokens of its heads; and back.
void check_all_to_all(const Group& all) {
  const int64_t tokens = 2 * all.size() + 1;
  const Lengths per_member = balanced_split(tokens, all.size());
  const Lengths heads(static_cast<size_t>(all.size()), 2);
  const at::Tensor whole = ramp(0, {2, 2 * all.size(), tokens, 3});
  const at::Tensor mine = whole.split_with_sizes(per_member, 2)[static_cast<size_t>(all.group_rank())];
  const at::Tensor moved =
      all_to_all(all, mine, {.split_dim = 1, .split_lengths = heads, .join_dim = 2, .join_lengths = per_member});
  EXPECT_TRUE(at::equal(moved, whole.narrow(1, 2 * all.group_rank(), 2)));
  const at::Tensor back =
      all_to_all(all, moved, {.split_dim = 2, .split_lengths = per_member, .join_dim = 1, .join_lengths = heads});
  EXPECT_TRUE(at::equal(back, mine));
}

void check_messages(const Group& all) {
  at::Tensor values = all.group_rank() == 1 ? ramp(7, {4}) : at::zeros({4});
  broadcast(all, values, 1);
  EXPECT_TRUE(at::equal(values, ramp(7, {4})));
  const int64_t next = (all.group_rank() + 1) % all.size();
  const int64_t previous = (all.group_rank() + all.size() - 1) % all.size();
  const at::Tensor mine = ramp(all.group_rank(), {5});
  const at::Tensor arriving = at::empty({5});
  Transfer receiving = start_receive(all, arriving, previous);
  Transfer sending = start_send(all, mine, next);
  receiving.wait();
  sending.wait();
  EXPECT_TRUE(at::equal(arriving, ramp(previous, {5})));
  std::vector<Message> going, coming;  // with every other member, as neighbours in a box
  for (int64_t peer = 0; peer < all.size(); ++peer) {
    if (peer == all.group_rank()) continue;
    going.push_back({ramp(10 * all.group_rank() + peer, {3}), peer});
    coming.push_back({at::empty({3}), peer});
  }
  start_exchange(all, going, coming).wait();
  for (const auto& [cells, peer] : coming) EXPECT_TRUE(at::equal(cells, ramp(10 * peer + all.group_rank(), {3}))) << peer;
  barrier(all);
}

const RankTest kEveryCollective("every_collective", [](Connection& connection) {
  const Group all = connection.make_group("world", everybody(connection));
  check_reductions(all);
  check_strided(all);
  check_uneven_parts(all, at::kFloat);
  check_uneven_parts(all, at::kDouble);
  check_all_to_all(all);
  check_messages(all);
  const auto entries = connection.recorder().entries();
  EXPECT_EQ(entries.back().name, "barrier");
  EXPECT_EQ(entries.back().state, CallState::Done);
  EXPECT_EQ(entries.back().sequence, static_cast<int64_t>(entries.size()));
});

const RankTest kMeshGroups("mesh_groups", [](Connection& connection) {
  const Mesh mesh("tp-cp-dp", {.dp_replicate = connection.world_size() / 4, .tp = 2, .cp = 2});
  for (const auto& [name, axes] : {std::pair{"tp", AxisSet(Axis::Tp)}, std::pair{"cp", AxisSet(Axis::Cp)}, std::pair{"dp", kDp},
                                   std::pair{"tp-cp", Axis::Tp | Axis::Cp}}) {
    const Group group = connection.make_group(name, mesh.group_of(connection.rank(), axes));
    int64_t expected = 0;
    for (const int64_t rank : group.ranks()) expected += int64_t{1} << rank;
    const at::Tensor bit = at::full({1}, int64_t{1} << connection.rank(), at::kLong);
    EXPECT_EQ(all_reduce(group, bit).item<int64_t>(), expected) << name;
  }
});

// Long enough to go as direct messages, and with values whose sum depends on its order.
at::Tensor thirds(int64_t rank, int64_t count, at::ScalarType dtype) {
  return ((at::arange(count, at::kDouble) + 1) / 3 + static_cast<double>(rank) / 7).to(dtype);
}

void check_long_sums(const Group& all, at::ScalarType dtype) {
  const int64_t part = 70'000;
  const at::Tensor whole = thirds(all.group_rank(), part * all.size(), dtype), own = at::empty({part}, whole.options());
  at::Tensor expected = thirds(0, part * all.size(), dtype);
  for (int64_t rank = 1; rank < all.size(); ++rank) expected = expected + thirds(rank, part * all.size(), dtype);
  start_reduce_scatter_into(all, own, whole).wait();
  EXPECT_TRUE(at::equal(own, expected.narrow(0, all.group_rank() * part, part))) << dtype;
}

// Several at once, of both kinds, which are waited for in another order than they began.
void check_long_calls_under_way(const Group& all) {
  const int64_t part = 100'000;
  std::vector<at::Tensor> sums, gathered, wholes, parts;
  std::vector<Transfer> transfers;
  for (int64_t i = 0; i < 3; ++i) {
    wholes.push_back(at::full({part * all.size()}, i + all.group_rank(), at::kFloat));
    sums.push_back(at::empty({part}));
    transfers.push_back(start_reduce_scatter_into(all, sums.back(), wholes.back()));
    parts.push_back(at::full({part}, 10 * i + all.group_rank(), at::kFloat));
    gathered.push_back(at::empty({all.size(), part}));
    transfers.push_back(start_all_gather_into(all, gathered.back(), parts.back()));
  }
  for (auto transfer = transfers.rbegin(); transfer != transfers.rend(); ++transfer) transfer->wait();
  const int64_t n = all.size();
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(sums[static_cast<size_t>(i)], at::full({part}, n * i + n * (n - 1) / 2, at::kFloat)));
    for (int64_t rank = 0; rank < n; ++rank) {
      EXPECT_TRUE(at::equal(gathered[static_cast<size_t>(i)][rank], at::full({part}, 10 * i + rank, at::kFloat)));
    }
  }
}

const RankTest kLongMessages("long_messages", [](Connection& connection) {
  const Group all = connection.make_group("world", everybody(connection));
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) check_long_sums(all, dtype);
  check_long_calls_under_way(all);
  check_messages(all);          // which have a tag of their own
  const int64_t part = 50'000;  // a type without a sum of ours
  const at::Tensor own = at::empty({part}, at::kLong);
  start_reduce_scatter_into(all, own, at::full({part * all.size()}, 2, at::kLong)).wait();
  EXPECT_TRUE(at::equal(own, at::full({part}, 2 * all.size(), at::kLong)));
});

// A member that has made a group may drop it before the others' call has returned. Busy cores make their calls late.
const RankTest kShortGroups("short_groups", [](Connection& connection) {
  std::vector<std::jthread> busy(2);
  for (std::jthread& thread : busy) {
    thread = std::jthread([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const Group group = connection.make_group("short", everybody(connection));
    EXPECT_EQ(group.size(), connection.world_size());
  }
});

// A thread of Gloo that preempts a sender on its core polls until the next tick: 4 ms for each message between two ranks.
RankTest patient_threads("patient_threads", [](Connection& connection) {
  if (sched_getscheduler(0) != SCHED_OTHER) return;  // who has started the test has chosen another policy
  const Group all = connection.make_group("all", everybody(connection));
  barrier(all);
  int64_t patient = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    patient += sched_getscheduler(std::stoi(task.path().filename().string())) == SCHED_BATCH ? 1 : 0;
  }
  EXPECT_GE(patient, 1);
  EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
});

TEST(Collectives, OnTwoRanks) { run_on_ranks("every_collective", 2); }
TEST(Collectives, OnThreeRanks) { run_on_ranks("every_collective", 3); }
TEST(Collectives, LongMessagesOnTwoRanks) { run_on_ranks("long_messages", 2); }
TEST(Collectives, LongMessagesOnThreeRanks) { run_on_ranks("long_messages", 3); }
TEST(Collectives, GroupsOfAMesh) { run_on_ranks("mesh_groups", 8); }
TEST(Collectives, ThreadsOfGlooDoNotPreemptSenders) { run_on_ranks("patient_threads", 2); }
TEST(Collectives, GroupsMayBeDroppedAtOnce) { run_on_ranks("short_groups", 3); }

TEST(Collectives, AreTheIdentityAlone) {
  const Group alone;
  const at::Tensor values = at::arange(6).view({2, 3});
  EXPECT_TRUE(at::equal(all_reduce(alone, values), values));
  EXPECT_TRUE(at::equal(all_gather(alone, values, 1, {3}), values));
  EXPECT_TRUE(at::equal(reduce_scatter(alone, values, 0, {2}), values));
  EXPECT_TRUE(
      at::equal(all_to_all(alone, values, {.split_dim = 0, .split_lengths = {2}, .join_dim = 1, .join_lengths = {3}}), values));
  broadcast(alone, values, 0);
  barrier(alone);
}

}  // namespace
}  // namespace welkin::parallel
