// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/same_run.h"

#include "harness.h"

namespace welkin::config {
namespace {

using test::resolve_shipped;

TEST(SameRun, IgnoresWhatCannotChangeTheNumbers) {
  const auto a = resolve_shipped("ViT.yaml", {"--config=short"}).config;
  const auto b =
      resolve_shipped("ViT.yaml",
                      {"--config=short", "--resume", "--threads=2", "--num_data_workers=4", "--device=cpu", "--num_iters=256",
                       "--data_root=/elsewhere", "--log_root=/l", "--micro_batch_size=4", "--checkpoint_interval=10"},
                      2)
          .config;
  std::string difference;
  EXPECT_TRUE(same_run(a, b, &difference)) << difference;
  EXPECT_EQ(difference, "");
}

TEST(SameRun, NamesWhatDiffers) {
  const auto a = resolve_shipped("ViT.yaml").config;
  std::string difference;
  EXPECT_FALSE(same_run(a, resolve_shipped("ViT.yaml", {"--set=lr=1e-3", "--seed=4"}).config, &difference));
  EXPECT_EQ(difference, "lr=0.0005 and 0.001, lr_schedule.start_lr=0.0005 and 0.001, seed=0 and 4");
  EXPECT_FALSE(same_run(a, resolve_shipped("ViT.yaml", {"--set=options.a=1"}).config, &difference));
  EXPECT_EQ(difference, "options");
  EXPECT_FALSE(same_run(a, resolve_shipped("ViT.yaml", {"--set=train_data_path=/data/other"}).config, &difference));
  EXPECT_EQ(difference, "train_data_path=/data/train and /data/other");
  EXPECT_FALSE(same_run(a, resolve_shipped("sc23/ViT.yaml", {"--config=mp", "--set=dt=2"}).config, nullptr));
}

}  // namespace
}  // namespace welkin::config
