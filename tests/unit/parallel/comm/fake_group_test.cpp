// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/fake_group.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "parallel/comm/collectives.h"

namespace welkin::parallel {
namespace {

TEST(SilentGroup, CallsReturnAtOnceWithTheRightShapes) {
  const Group group = fake_group("dp", {{0, 1, 2}, 1});
  EXPECT_EQ(group.size(), 3);
  EXPECT_EQ(group.group_rank(), 1);
  EXPECT_EQ(group.text(), "dp [0, 1, 2]");
  const at::Tensor values = at::arange(6, at::kFloat).view({2, 3});
  EXPECT_TRUE(at::equal(all_reduce(group, values), values));
  const at::Tensor gathered = all_gather(group, values, 0, {2, 2, 2});
  EXPECT_EQ(gathered.sizes(), (std::vector<int64_t>{6, 3}));
  EXPECT_TRUE(at::equal(gathered.narrow(0, 4, 2), values));
  EXPECT_EQ(reduce_scatter(group, at::ones({5, 2}), 0, {2, 2, 1}).sizes(), (std::vector<int64_t>{2, 2}));
  const at::Tensor moved =
      all_to_all(group, at::ones({3, 2}), {.split_dim = 0, .split_lengths = {1, 1, 1}, .join_dim = 1, .join_lengths = {1, 2, 1}});
  EXPECT_EQ(moved.sizes(), (std::vector<int64_t>{1, 4}));
  EXPECT_TRUE(at::isfinite(moved).all().item<bool>());
  const at::Tensor received = at::ones({4});
  start_receive(group, received, 0).wait();
  EXPECT_EQ(received.sum().item<float>(), 0);
  start_send(group, values, 2).wait();
  broadcast(group, values, 0);
  barrier(group);
}

TEST(SilentGroup, OfOneIsAGroupOfOne) {
  const Group group = fake_group("tp", {{4}, 0});
  EXPECT_EQ(group.size(), 1);
  EXPECT_EQ(all_reduce(group, at::ones({2})).sum().item<float>(), 2);
}

}  // namespace
}  // namespace welkin::parallel
