// SPDX-License-Identifier: Apache-2.0
// Transfers over an emulated link: right values, no earlier than the link allows, one after the other; and the sweep of
// all collectives, with the totals that it leaves in the recorder.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "bench/scaling/collectives_bench.h"
#include "core/stopwatch.h"
#include "parallel/c10d/c10d_group.h"
#include "parallel/c10d/c10d_link_backend.h"
#include "rank_processes.h"

namespace welkin::parallel {
namespace {

Group everyone_of(Connection& connection) {
  return connection.make_group("world", Mesh("dp", {.dp_replicate = connection.world_size()}).group_of(connection.rank(), kDp));
}

const RankTest kLink("emulated_link", [](Connection& connection) {
  const Group plain = everyone_of(connection);
  const auto link = std::make_shared<EmulatedLink>();
  link->latency_s = 0.02;
  link->bytes_per_second = 1e6;
  const auto inner = process_group_of(plain)->getBackend(c10::DeviceType::CPU);
  LinkBackend backend(inner, link);
  std::vector<at::Tensor> one{at::full({2500}, 1.0 + static_cast<double>(connection.rank()))};  // 10 kB: 20 + 10 ms
  std::vector<at::Tensor> other{at::ones({2500})};
  const Stopwatch watch;
  const auto first = backend.allreduce(one, {});
  const auto second = backend.allreduce(other, {});
  EXPECT_LT(watch.seconds(), 0.02);  // they are under way
  first->wait();
  EXPECT_GE(watch.seconds(), 0.030);
  second->getFuture()->wait();
  EXPECT_GE(watch.seconds(), 0.060);
  EXPECT_LT(watch.seconds(), 0.5);
  EXPECT_TRUE(at::equal(one[0], at::full({2500}, 3.0)));
  EXPECT_TRUE(at::equal(other[0], at::full({2500}, 2.0)));
  EXPECT_TRUE(at::equal(second->getFuture()->value().toTensorVector().at(0), other[0]));
  EXPECT_EQ(link->bytes.load(), 20000);
  EXPECT_EQ((link->busy_ns.load() + 500'000) / 1'000'000, 60);  // ms
});

// Every collective over every axis, as bench --collectives does, is timed alike on all ranks and fitted.
const RankTest kSweep("collectives_sweep", [](Connection& connection) {
  const auto make = [&](const std::string& name, GroupMembers members) {
    return connection.make_group(name, std::move(members));
  };
  const MeshGroups groups(make, connection.rank(), Mesh("tp-dp", {.dp_replicate = 2, .tp = 2}));
  const auto report = bench::run_collectives_bench(groups, {.sizes = {1024, 65536}, .seconds = 0.002});
  EXPECT_EQ(report.times.size(), 2U * 6 * 2);
  EXPECT_EQ(report.fits.size(), 2U * 6);
  const Group all = everyone_of(connection);
  for (const auto& time : report.times) {
    EXPECT_GT(time.seconds, 0);
    EXPECT_EQ(all_reduce(all, at::full({1}, time.seconds, at::kDouble), Reduction::Max).item<double>(), time.seconds);
  }
  for (const auto& fit : report.fits) EXPECT_TRUE(fit.latency_s > 0 || fit.bytes_per_second > 0);
  const auto totals = connection.recorder().totals();
  EXPECT_TRUE(
      std::any_of(totals.begin(), totals.end(), [](const CallTotal& t) { return t.name == "all_to_all" && t.bytes > 0; }));
});

TEST(BenchCollectives, TimesAndFitsEveryAxis) { run_on_ranks("collectives_sweep", 4); }
TEST(EmulatedLink, EndsTransfersWhenTheLinkWould) { run_on_ranks("emulated_link", 2); }

}  // namespace
}  // namespace welkin::parallel
