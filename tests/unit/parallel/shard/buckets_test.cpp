// SPDX-License-Identifier: Apache-2.0
// Buckets of the U-Net in full size, as the tutorials' texts and PyTorch have them: 8 at 25 MB, 5 at 100 MB.
#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parallel/shard/data_parallel.h"

namespace welkin::parallel {
namespace {

// Shapes alone: no memory is touched.
ParamTable full_unet() {
  const std::vector<std::array<int64_t, 3>> layers = {{64, 4, 64},      {128, 64, 128},  {256, 128, 256}, {512, 256, 512},
                                                      {512, 512, 512},  {512, 512, 512}, {512, 512, 512}, {1024, 512, 512},
                                                      {1024, 256, 256}, {512, 128, 128}, {256, 64, 64},   {128, 5, 5}};
  ParamTable table;
  const auto add = [&](const std::vector<int64_t>& shape) {
    ParamRow row;
    row.global_shape = shape;
    row.local = at::empty(shape, at::TensorOptions(at::kFloat).device(at::kMeta)).requires_grad_();
    table.rows().push_back(row);
  };
  for (const auto& [out, in, bias] : layers) {
    add({out, in, 4, 4, 4});
    add({bias});
  }
  return table;
}

TEST(Buckets, FullUnetHasEightAt25AndFiveAt100) {
  const ParamTable table = full_unet();
  ASSERT_EQ(table.num_parameters(), 116'977'029);
  EXPECT_EQ(describe(plan_buckets(table, 25)), "8 buckets: 4.2 80.0 128.0 64.0 64.0 64.0 32.0 10.1 MiB");
  EXPECT_EQ(describe(plan_buckets(table, 100)), "5 buckets: 4.2 208.0 128.0 104.0 2.1 MiB");
}

TEST(Buckets, HoldEveryParameterOnceLastFirst) {
  const ParamTable table = full_unet();
  std::vector<size_t> all;
  for (const Bucket& bucket : plan_buckets(table, 25)) all.insert(all.end(), bucket.parameters.begin(), bucket.parameters.end());
  ASSERT_EQ(all.size(), table.rows().size());
  EXPECT_TRUE(std::is_sorted(all.rbegin(), all.rend()));
}

TEST(Buckets, LeaveOutFrozenParameters) {
  const ParamTable table = full_unet();
  for (const size_t row : {0U, 5U}) table.rows()[row].local.set_requires_grad(false);
  std::vector<size_t> all;
  for (const Bucket& bucket : plan_buckets(table, 25)) all.insert(all.end(), bucket.parameters.begin(), bucket.parameters.end());
  EXPECT_EQ(all.size(), table.rows().size() - 2);
  EXPECT_THAT(all, testing::AllOf(testing::Not(testing::Contains(0U)), testing::Not(testing::Contains(5U))));
}

}  // namespace
}  // namespace welkin::parallel
