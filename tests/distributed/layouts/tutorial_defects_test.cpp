// SPDX-License-Identifier: Apache-2.0
// The tutorials' defects that need several ranks are absent (docs/reference/defects.md). Each check is run with the old behaviour
// as well, which it must find.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "parallel/mesh/mesh.h"
#include "parallel/shard/data_parallel.h"
#include "rank_processes.h"
#include "train/learn/gradients.h"

namespace welkin::parallel {
namespace {

constexpr int64_t kManyParameters = 6;
constexpr int64_t kElements = 300 * 1024;  // above a mebibyte: each parameter is a bucket of its own

Group all_ranks(Connection& connection) {
  return connection.make_group("world", Mesh("dp", {.dp_replicate = connection.world_size()}).group_of(connection.rank(), kDp));
}

ParamTable separate_parameters() {
  ParamTable table;
  for (int64_t i = 0; i < kManyParameters; ++i) {
    ParamRow row;
    row.name = cat("p", i);
    row.global_shape = {kElements};
    row.local = at::ones({kElements}).requires_grad_();
    table.rows().push_back(row);
  }
  return table;
}

// d loss / d p_i = (i + 1) (rank + 1), so the mean over the ranks is (i + 1) (ranks + 1) / 2: exact in every dtype here.
at::Tensor loss_of_rank(const ParamTable& table, int64_t rank) {
  at::Tensor loss = at::full({}, 0.0F);
  for (size_t i = 0; i < table.rows().size(); ++i) {
    loss = loss + table.rows()[i].local.sum() * static_cast<double>((static_cast<int64_t>(i) + 1) * (rank + 1));
  }
  return loss;
}

bool each_has_its_own_mean(const std::vector<at::Tensor>& gradients, int64_t ranks) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const double mean = static_cast<double>(i + 1) * static_cast<double>(ranks + 1) / 2;
    if (!at::equal(gradients[i], at::full_like(gradients[i], mean))) return false;
  }
  return true;
}

// The tutorial's hook: reductions are started in a loop, and what shall happen to each result is said by a callback that looks at
// the loop's variable when it is called, and not when it is made.
std::vector<at::Tensor> exchanged_by_callbacks(const Group& all, const ParamTable& table, bool binds_late) {
  std::vector<at::Tensor> gradients, sums;
  std::vector<std::function<void()>> when_done;
  size_t current = 0;
  for (size_t i = 0; i < table.rows().size(); ++i) {
    current = i;
    gradients.push_back(table.rows()[i].local.grad().clone());
    sums.push_back(all_reduce(all, gradients.back()));
    const auto finish = [&](size_t which) { gradients[which].copy_(sums[which] / all.size()); };
    if (binds_late) {
      when_done.emplace_back([finish, &current] { finish(current); });
    } else {
      when_done.emplace_back([finish, i] { finish(i); });
    }
  }
  for (const auto& callback : when_done) callback();
  return gradients;
}

const RankTest kLateCapture("late_capture", [](Connection& connection) {
  const Group all = all_ranks(connection);
  for (const GradientDtype comm_dtype :
       {GradientDtype::Same, GradientDtype::Bf16, GradientDtype::Fp16}) {  // the last two by a hook
    const ParamTable table = separate_parameters();
    DataParallel replicas(table, all, {.bucket_cap_mb = 1, .comm_dtype = comm_dtype});
    ASSERT_GT(replicas.buckets().size(), 2U);
    for (int step = 0; step < 2; ++step) {  // the second with the buckets in the order in which gradients came
      replicas.backward(loss_of_rank(table, all.group_rank()), /*is_last=*/true);
      std::vector<at::Tensor> gradients;
      for (const ParamRow& row : table.rows()) gradients.push_back(row.gradient());
      EXPECT_TRUE(each_has_its_own_mean(gradients, all.size())) << "step " << step;
      replicas.clear_gradients();
    }
  }
  const ParamTable table = separate_parameters();
  loss_of_rank(table, all.group_rank()).backward();
  EXPECT_TRUE(each_has_its_own_mean(exchanged_by_callbacks(all, table, /*binds_late=*/false), all.size()));
  EXPECT_FALSE(each_has_its_own_mean(exchanged_by_callbacks(all, table, /*binds_late=*/true), all.size()))
      << "the check does not see the defect";
});

TEST(TutorialDefectsOnRanks, D3EveryBucketComesBackToItsOwnParameters) { run_on_ranks("late_capture", 2); }

// The ranks' verdicts on a step whose gradient overflows in the last rank's shard alone, and the scale after it.
struct ScaleVerdict {
  double found_inf = 0, scale = 0;
};

ScaleVerdict verdict_of(const Group& tp, bool decides_alone) {
  config::PrecisionConfig config;
  config.amp_mode = config::AmpMode::Fp16;
  config.loss_scale = 1024;
  train::LossScaler scaler(config, at::kCPU);
  const bool overflows = tp.group_rank() == tp.size() - 1;
  std::vector<at::Tensor> shard{at::full({4}, overflows ? std::numeric_limits<float>::infinity() : 1.0F)};
  train::GradientScope scope;
  if (!decides_alone) scope.any = [&](const at::Tensor& flag) { return all_reduce(tp, flag, Reduction::Max); };
  const auto verdict = train::check_gradients(shard, at::full({}, 1.0F), scaler, /*clip_norm=*/0, scope);
  scaler.update(verdict.overflow);
  return {verdict.found_inf.item<double>(), scaler.scale().item<double>()};
}

bool is_equal_on_all(const Group& group, const ScaleVerdict& verdict) {
  const at::Tensor mine = at::tensor({verdict.found_inf, verdict.scale}, at::kDouble);
  return at::equal(all_reduce(group, mine, Reduction::Max), -all_reduce(group, -mine, Reduction::Max));
}

const RankTest kOneVerdict("one_verdict", [](Connection& connection) {
  const Group tp =
      connection.make_group("tp", Mesh("tp", {.tp = connection.world_size()}).group_of(connection.rank(), AxisSet(Axis::Tp)));
  const ScaleVerdict ours = verdict_of(tp, /*decides_alone=*/false);
  EXPECT_EQ(ours.found_inf, 1) << "every rank skips";
  EXPECT_EQ(ours.scale, 512);
  EXPECT_TRUE(is_equal_on_all(tp, ours));
  EXPECT_FALSE(is_equal_on_all(tp, verdict_of(tp, /*decides_alone=*/true))) << "the check does not see the defect";
});

TEST(TutorialDefectsOnRanks, D9AnOverflowInOneShardIsEverybodys) { run_on_ranks("one_verdict", 2); }

}  // namespace
}  // namespace welkin::parallel
