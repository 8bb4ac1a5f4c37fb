// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/paths.h"

#include "config/resolve/same_run.h"
#include "harness.h"

namespace welkin::config {
namespace {

using test::resolve_shipped;
using test::resolve_text;
using ::testing::HasSubstr;

TEST(Paths, RootsRebindThePrefixes) {
  const auto config = resolve_shipped("ViT.yaml", {"--data_root=/mnt/era5/", "--log_root=runs"}).config;
  EXPECT_EQ(config.data.train_data_path, "/mnt/era5/train");
  EXPECT_EQ(config.data.global_means_path, "/mnt/era5/stats/global_means.npy");
  EXPECT_EQ(config.output.expdir, "runs");
  const auto same =
      resolve_text(test::kVitFile, {"--data_root=/data/era5", "--set=train_data_path=/database/x", "--set=valid_data_path=/data"})
          .config;
  EXPECT_EQ(same.data.train_data_path, "/database/x") << "only whole folder names";
  EXPECT_EQ(same.data.valid_data_path, "/data/era5");
}

TEST(Paths, ASavedRunsPathsFollowItsRoots) {
  const std::string saved = std::string(test::kVitFile) +
                            "  data: {data_root: /old/data, train_data_path: /old/data/train, valid_data_path: /older/valid}\n"
                            "  output: {log_root: old, expdir: old/x}\n";
  const auto kept = resolve_text(saved).config;
  EXPECT_EQ(kept.data.train_data_path, "/old/data/train");
  EXPECT_EQ(kept.output.expdir, "old/x");
  const auto moved = resolve_text(saved, {"--data_root=/new/", "--log_root=/logs2"}).config;
  EXPECT_EQ(moved.data.train_data_path, "/new/train");
  EXPECT_EQ(moved.data.valid_data_path, "/older/valid");
  EXPECT_EQ(moved.output.expdir, "/logs2/x");
  EXPECT_EQ(resolve_text(saved, {"--data_root=/old"}).config.data.train_data_path, "/old/train") << "to a folder above";
  EXPECT_EQ(resolve_text(saved, {"--data_root=/old/data/x"}).config.data.train_data_path, "/old/data/x/train") << "below";
  const auto flag = resolve_text(saved, {"--data_root=/new", "--set=train_data_path=/old/data/train"}).config;
  EXPECT_EQ(flag.data.train_data_path, "/old/data/train") << "a flag names the folder as it is";
}

TEST(Paths, RelativeOnesAreFoundFromAnotherFolder) {
  const auto here = std::filesystem::current_path().string();
  auto config =
      resolve_shipped("ViT.yaml", {"--data_root=sub/d/", "--set=inf_data_path=other/test", "--log_root=runs", "--set=stage=fast"})
          .config;
  const auto saved = with_absolute_paths(config);
  EXPECT_EQ(saved.data.data_root, here + "/sub/d");
  EXPECT_EQ(saved.data.train_data_path, here + "/sub/d/train");
  EXPECT_EQ(saved.data.global_means_path, here + "/sub/d/stats/global_means.npy");
  EXPECT_EQ(saved.data.inf_data_path, here + "/other/test");
  EXPECT_EQ(saved.data.stage, here + "/fast");
  EXPECT_EQ(saved.output.log_root, here + "/runs");
  EXPECT_EQ(saved.output.expdir, here + "/" + config.output.expdir);
  EXPECT_EQ(with_absolute_paths(resolve_shipped("ViT.yaml", {"--data_root=."}).config).data.train_data_path, here + "/train");
  std::string difference;
  EXPECT_TRUE(same_run(saved, with_absolute_paths(saved), &difference)) << difference;
  config = resolve_shipped("ViT.yaml", {"--data_root=/mnt"}).config;
  EXPECT_EQ(with_absolute_paths(config).data.train_data_path, "/mnt/train");
}

TEST(Paths, TheCacheReplacesTheFolderOfTheHdf5FilesOnly) {
  const auto data = resolve_shipped("UNet.yaml", {"--set=use_cache=/local/ssd"}).config.data;
  EXPECT_EQ(data.train_path, "/local/ssd/downsamp_2048crop_train.h5");
  EXPECT_EQ(data.val_path, "/local/ssd/downsamp_1024crop_valid.h5");
  EXPECT_EQ(data.train_path_npy_data, "/data/downsamp_2048crop_train_data.npy");
}

TEST(Paths, AllMissingOnesAreReportedTogetherWithTheRemedy) {
  const auto config = resolve_shipped("ViT.yaml", {"--data_root=/nowhere"}).config;
  EXPECT_EQ(missing_paths(config).size(), 4u);
  try {
    check_paths(config);
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_STREQ(
        error.what(),
        "[config] paths of the training data do not exist: train_data_path=/nowhere/train, valid_data_path=/nowhere/valid, "
        "global_means_path=/nowhere/stats/global_means.npy, global_stds_path=/nowhere/stats/global_stds.npy. Give --data_root "
        "DIR for "
        "what /data stands for (now /nowhere), or make data with welkin data simulate or welkin data ingest.");
  }
  EXPECT_THAT(describe_missing(resolve_text(test::kVitFile).config), HasSubstr("train_data_path=(not given)"));
}

TEST(Paths, MissingStatisticsComeWithTheCommandThatMakesThem) {
  const auto config =
      resolve_text(test::kVitFile, {"--set=train_data_path=/", "--set=valid_data_path=/",
                                    "--set=global_means_path=/nowhere/means.npy", "--set=global_stds_path=/nowhere/stds.npy"})
          .config;
  try {
    check_paths(config);
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("global_stds_path=/nowhere/stds.npy. Compute them with welkin data stats / --out /nowhere, "
                          "and give global_means_path and global_stds_path."));
  }
}

TEST(Paths, DependOnTheLoader) {
  const auto first = [](const std::string& loader) {
    const auto missing =
        missing_paths(resolve_shipped("UNet.yaml", {"--data_root=/nowhere", "--data_loader_config", loader}).config);
    return missing.empty() ? std::string() : missing.front().key;
  };
  EXPECT_EQ(first("lowmem"), "train_path");
  EXPECT_EQ(first("dali-lowmem"), "train_path_npy_data");
  EXPECT_EQ(first("synthetic"), "");
}

TEST(Paths, AreFoundWhereTheyAre) {
  const auto config = resolve_text(test::kVitFile, {"--set=train_data_path=/", "--set=valid_data_path=/",
                                                    "--set=global_means_path=/", "--set=global_stds_path=/"})
                          .config;
  EXPECT_TRUE(missing_paths(config).empty());
  EXPECT_NO_THROW(check_paths(config));
}

TEST(Paths, RunFolderFollowsTheProgramsRules) {
  EXPECT_EQ(run_folder(resolve_shipped("UNet.yaml", {"--config=short", "--run_num=a", "--log_root=/l"}, 4).config, 4),
            "/l/short/4GPU/a");
  EXPECT_EQ(run_folder(resolve_shipped("ViT.yaml", {"--config=mp", "--tensor_parallel=2", "--context_parallel=2"}, 8).config, 8),
            "/logs/mp/4MP/00");
  EXPECT_EQ(run_folder(resolve_shipped("UNet.yaml", {"--config=base_sm"}).config, 1), "./logs/base_sm/1GPU/00");
}

}  // namespace
}  // namespace welkin::config
