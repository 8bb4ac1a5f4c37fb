// SPDX-License-Identifier: Apache-2.0
#include "config/print/print.h"

#include "harness.h"

namespace welkin::config {
namespace {

using test::resolve_shipped;
using test::resolve_text;
using ::testing::HasSubstr;
using ::testing::Not;

// Loads what yaml() printed. The path of the file is the one thing that a printed configuration does not hold.
RunConfig reloaded(const RunConfig& config, int64_t world_size) {
  RunConfig again = from_yaml(yaml(config), "printed.yaml", world_size);
  again.yaml_config = config.yaml_config;
  return again;
}

TEST(Print, YamlOfEveryShippedPresetLoadsToTheSameConfiguration) {
  int count = 0;
  for (const char* file : {"UNet.yaml", "sc21/UNet.yaml", "ViT.yaml", "sc23/ViT.yaml"}) {
    for (const std::string& preset : resolve_shipped(file).presets) {
      const RunConfig config = resolve_shipped(file, {"--config", preset}, 4).config;
      EXPECT_EQ(reloaded(config, 4), config) << file << " " << preset << "\n" << yaml(config);
      ++count;
    }
  }
  EXPECT_EQ(count, 18 + 9 + 16 + 16);
}

TEST(Print, YamlKeepsFlagsOddStringsAndOptions) {
  const std::vector<std::vector<std::string>> cases = {
      {"--data_root=/data/deep", "--log_root=/tmp/it's here", "--run_num=007", "--local_batch_size=2"},
      {"--tensor_parallel=4", "--compat=sc23", "--resume", "--seed=5"},
      {"--set=options={a: 'null', b: 3, c: \"x\\ny\"}", "--set=channel_names=[u10m, 'a, b', '5']", "--set=clip_norm=1e-3"},
      {"--num_epochs=3", "--set=schedule=table", "--set=lr_schedule.table=[0, 1e-3, 10, 0]", "--enable_amp"},
      {"--set=forcing=[solar]", "--set=history=3", "--set=betas=[0.8, 0.9]", "--set=use_cache=/cache"}};
  for (const auto& arguments : cases) {
    const RunConfig config = resolve_shipped("sc23/ViT.yaml", arguments, 4).config;
    EXPECT_EQ(reloaded(config, 4), config) << yaml(config);
  }
}

TEST(Print, YamlReadsAsAFileOfOnePreset) {
  const std::string text = yaml(resolve_shipped("UNet.yaml", {"--config=short", "--num_epochs=2"}).config);
  EXPECT_THAT(text, HasSubstr("\nshort:\n  tutorial: sc22\n  model:\n    model: unet3d\n"));
  EXPECT_THAT(text, HasSubstr("    weight_init:\n      conv_scale: 0.02\n      conv_bias: 0.0\n  data:\n"));
  EXPECT_THAT(text, HasSubstr("    num_epochs: 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("embed_dim")));
  EXPECT_THAT(test::config_error([&] { from_yaml("a: {}\nb: {}\n", "x.yaml", 1); }),
              HasSubstr("x.yaml: a saved configuration holds one preset: found=2. Use the file as it was saved."));
}

TEST(Print, TableShowsOriginsAndWhatWasInferred) {
  const std::string text =
      table(resolve_shipped("sc23/ViT.yaml", {"--config=mp", "--row_parallel_size=4", "--run_num=tp4"}, 8), 8);
  EXPECT_THAT(text, HasSubstr("tutorial    SC23 (from keys embed_dim, depth, dropout, enable_fused and data_loader_config)\n"));
  EXPECT_THAT(text, HasSubstr("its flags   yaml_config config data_loader_config "));
  EXPECT_THAT(text, HasSubstr("model       vit, q/k/v joint\n"));
  EXPECT_THAT(text, HasSubstr("run folder  /logs/mp/4MP/tp4\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("num_iters +30000 +steps +[^\n]*/config/sc23/ViT.yaml:[0-9]+\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("tensor_parallel +4 +ranks +from row_parallel_size\n"));
  EXPECT_THAT(text, HasSubstr("note: known keys without effect in this run: wireup_info"));
}

// Spec sections 2, 6a and 8: own keys, then inherited ones in the parent's order, then what the programs add.
TEST(Print, DumpOfTheUnet) {
  const auto lines = dump_lines(resolve_shipped("UNet.yaml", {"--config=bs512_opt"}));
  const std::vector<std::string> expected = {
      "global_batch_size 512",
      "num_epochs 40",
      "data_loader_config dali-lowmem",
      "amp_mode fp16",
      "enable_apex True",
      "enable_jit True",
      "weight_init {'conv_init': 'normal', 'conv_scale': 0.02, 'conv_bias': 0.0}",
      "lambda_rho 0",
      "full_scale True",
      "base_batch_size 64",
      "Nsamples 65536",
      "Nsamples_val 8192",
      "enable_benchy False",
      "expdir /logs",
      "lr_schedule {'scaling': 'sqrt', 'start_lr': 0.0002, 'end_lr': 0.0, 'warmup_steps': 128}",
      "box_size [1024, 512]",
      "data_size 64",
      "num_data_workers 2",
      "N_out_channels 5",
      "train_path /data/downsamp_2048crop_train.h5",
      "val_path /data/downsamp_1024crop_valid.h5",
      "train_path_npy_data /data/downsamp_2048crop_train_data.npy",
      "train_path_npy_label /data/downsamp_2048crop_train_label.npy",
      "val_path_npy_data /data/downsamp_1024crop_valid_data.npy",
      "val_path_npy_label /data/downsamp_1024crop_valid_label.npy",
      "use_cache None",
      "amp_enabled True",
      "amp_dtype torch.float16"};
  EXPECT_EQ(lines, expected);
  const auto sc21 = dump_lines(resolve_shipped("sc21/UNet.yaml", {"--enable_amp"}));
  EXPECT_THAT(sc21, ::testing::Contains("enable_amp True"));
  EXPECT_EQ(sc21.back(), "use_cache None");
}

TEST(Print, DumpOfTheVit) {
  const auto lines = dump_lines(
      resolve_shipped("ViT.yaml", {"--config=short", "--context_parallel=2", "--parallel_order=cp-tp-dp", "--amp_mode=bf16"}, 2));
  const std::vector<std::string> first(lines.begin(), lines.begin() + 5);
  EXPECT_EQ(first, (std::vector<std::string>{"limit_nsamples 512", "limit_nsamples_val 128", "num_iters 128", "embed_dim 384",
                                             "depth 12"}));
  const std::vector<std::string> last(lines.end() - 7, lines.end());
  EXPECT_EQ(last, (std::vector<std::string>{"wireup_info env", "wireup_store tcp", "amp_enabled True", "amp_dtype torch.bfloat16",
                                            "tp 1", "cp 2", "order cp-tp-dp"}));
  EXPECT_THAT(lines,
              ::testing::IsSupersetOf({"lr 0.0005", "lr_schedule cosine", "warmup 0", "img_size [360, 720]", "dropout 0.0"}));
  const auto sc23 = dump_lines(resolve_shipped("sc23/ViT.yaml", {"--config=mp", "--row_parallel_size=4"}, 4));
  EXPECT_EQ(std::vector<std::string>(sc23.end() - 2, sc23.end()),
            (std::vector<std::string>{"model_parallel_sizes [4, 1]", "model_parallel_names ['row_matmul', 'col_matmul']"}));
}

}  // namespace
}  // namespace welkin::config
