// SPDX-License-Identifier: Apache-2.0
// The shipped files hold every preset of the tutorials with its values, written down here once more from the tutorials'
// interface.
#include <map>

#include "config/resolve/file.h"
#include "config/schema/key.h"
#include "config/schema/value.h"
#include "core/text.h"
#include "harness.h"

namespace welkin::config {
namespace {

using Values = std::map<std::string, std::string>;

struct Preset {
  std::string name;
  Values values;
};

Values with(Values values, const Values& changes) {
  for (const auto& [key, value] : changes) values[key] = value;
  return values;
}

const Values kUnetBase = {{"weight_init.conv_init", "normal"},
                          {"weight_init.conv_scale", "0.02"},
                          {"weight_init.conv_bias", "0.0"},
                          {"lambda_rho", "0.0"},
                          {"full_scale", "true"},
                          {"global_batch_size", "64"},
                          {"base_batch_size", "64"},
                          {"Nsamples", "65536"},
                          {"Nsamples_val", "8192"},
                          {"num_epochs", "10"},
                          {"amp_mode", "none"},
                          {"enable_apex", "false"},
                          {"enable_benchy", "false"},
                          {"enable_jit", "false"},
                          {"expdir", "/logs"},
                          {"lr_schedule.scaling", "sqrt"},
                          {"lr_schedule.start_lr", "0.0002"},
                          {"lr_schedule.end_lr", "0.0"},
                          {"lr_schedule.warmup_steps", "128"},
                          {"data_loader_config", "lowmem"},
                          {"box_size", "[1024, 512]"},
                          {"data_size", "64"},
                          {"num_data_workers", "2"},
                          {"N_out_channels", "5"},
                          {"train_path", "/data/downsamp_2048crop_train.h5"},
                          {"val_path", "/data/downsamp_1024crop_valid.h5"},
                          {"train_path_npy_data", "/data/downsamp_2048crop_train_data.npy"},
                          {"train_path_npy_label", "/data/downsamp_2048crop_train_label.npy"},
                          {"val_path_npy_data", "/data/downsamp_1024crop_valid_data.npy"},
                          {"val_path_npy_label", "/data/downsamp_1024crop_valid_label.npy"},
                          {"use_cache", "null"},
                          {"model", "unet3d"}};

const Values kUnetOptimized = {
    {"data_loader_config", "dali-lowmem"}, {"amp_mode", "fp16"}, {"enable_apex", "true"}, {"enable_jit", "true"}};
const Values kShortBoxes = {{"Nsamples", "4096"}, {"Nsamples_val", "512"}, {"num_epochs", "4"}};

Values batch(const char* global, const char* epochs) { return {{"global_batch_size", global}, {"num_epochs", epochs}}; }

std::vector<Preset> sc21_presets() {
  const Values optimized = with(kUnetBase, kUnetOptimized);
  return {{"base", kUnetBase},
          {"short", with(kUnetBase, kShortBoxes)},
          {"short_opt", with(with(kUnetBase, kShortBoxes), kUnetOptimized)},
          {"bs64_opt", optimized},
          {"bs256_opt", with(optimized, batch("256", "20"))},
          {"bs512_test", with(optimized, batch("512", "10"))},
          {"bs512_opt", with(optimized, batch("512", "40"))},
          {"bs2048_opt", with(optimized, batch("2048", "160"))},
          {"bs8192_opt", with(optimized, batch("8192", "320"))}};
}

std::vector<Preset> sc22_presets() {
  std::vector<Preset> presets = sc21_presets();
  presets[2].values["num_data_workers"] = "8";
  Values summit = with(kUnetBase, {{"global_batch_size", "32"}, {"base_batch_size", "32"}, {"expdir", "./logs/"}});
  for (const char* key :
       {"train_path", "val_path", "train_path_npy_data", "train_path_npy_label", "val_path_npy_data", "val_path_npy_label"}) {
    summit[key].replace(0, 5, "/gpfs/alpine/stf011/world-shared/atsaris/SC22_tutorial_data");
  }
  const Values optimized = with(with(summit, kUnetOptimized), {{"num_data_workers", "7"}});
  const std::vector<Preset> more = {
      {"base_sm", summit},
      {"shorter_sm", with(summit, {{"Nsamples", "512"}, {"Nsamples_val", "64"}, {"num_epochs", "4"}})},
      {"short_sm", with(summit, kShortBoxes)},
      {"short_opt_sm", with(optimized, kShortBoxes)},
      {"bs32_opt_sm", with(optimized, batch("32", "3"))},
      {"bs576_test_sm", with(optimized, batch("576", "3"))},
      {"bs576_opt_sm", with(optimized, batch("576", "12"))},
      {"bs2304_opt_sm", with(optimized, batch("2304", "48"))},
      {"bs9216_opt_sm", with(optimized, batch("9216", "96"))}};
  presets.insert(presets.end(), more.begin(), more.end());
  return presets;
}

const Values kVitBase = {{"embed_dim", "384"},
                         {"depth", "12"},
                         {"dropout", "0.0"},
                         {"patch_size", "8"},
                         {"num_heads", "8"},
                         {"img_size", "[360, 720]"},
                         {"dt", "1"},
                         {"global_batch_size", "16"},
                         {"num_iters", "30000"},
                         {"amp_mode", "none"},
                         {"enable_jit", "false"},
                         {"enable_fused", "false"},
                         {"expdir", "/logs"},
                         {"lr_schedule", "cosine"},
                         {"lr", "0.0005"},
                         {"warmup", "0"},
                         {"optimizer", "Adam"},
                         {"data_loader_config", "pytorch"},
                         {"num_data_workers", "0"},
                         {"n_in_channels", "20"},
                         {"n_out_channels", "20"},
                         {"train_data_path", "/data/train"},
                         {"valid_data_path", "/data/valid"},
                         {"inf_data_path", "/data/test"},
                         {"time_means_path", "/data/stats/time_means.npy"},
                         {"global_means_path", "/data/stats/global_means.npy"},
                         {"global_stds_path", "/data/stats/global_stds.npy"},
                         {"limit_nsamples", "null"},
                         {"limit_nsamples_val", "null"},
                         {"wireup_info", "env"},
                         {"wireup_store", "tcp"},
                         {"model", "vit"}};

Values rated(const char* global, const char* lr) { return {{"global_batch_size", global}, {"lr", lr}}; }

std::vector<Preset> vit_presets(bool is_sc23) {
  const Values base = with(kVitBase, {{"qkv", is_sc23 ? "joint" : "separate"}});
  const Values loader = {{"data_loader_config", is_sc23 ? "dali" : "pytorch"}, {"num_data_workers", "8"}, {"amp_mode", "fp16"}};
  const Values fused = {{"enable_fused", is_sc23 ? "true" : "false"}};
  const Values jit = {{"enable_jit", "true"}};
  const Values brief = with(base, {{"limit_nsamples", "512"}, {"limit_nsamples_val", "128"}, {"num_iters", "128"}});
  Values opt = with(with(base, loader), fused);
  if (is_sc23) opt["enable_apex"] = "true";
  if (!is_sc23) opt["enable_jit"] = "true";
  const Values wide = with(with(with(with(base, loader), fused), jit),
                           {{"global_batch_size", "64"}, {"lr", "0.001"}, {"embed_dim", is_sc23 ? "1024" : "1536"}});
  std::vector<Preset> presets = {
      {"base", base}, {"short", brief}, {"short_opt", with(with(with(brief, loader), fused), jit)}, {"opt", opt}};
  const std::pair<const char*, const char*> rates[] = {{"16", "0.0005"},   {"32", "0.000707"}, {"64", "0.001"},
                                                       {"128", "0.00141"}, {"256", "0.002"},   {"512", "0.00283"},
                                                       {"1024", "0.004"},  {"2048", "0.00566"}};
  for (const auto& [global, lr] : rates) presets.push_back({cat("bs", global, "_opt"), with(opt, rated(global, lr))});
  presets.push_back({"mp", wide});
  presets.push_back({"mp_bs16", with(wide, rated("16", "0.0005"))});
  presets.push_back({"mp_bs32", with(wide, rated("32", "0.000707"))});
  presets.push_back({"mp_patch4", with(wide, {{"patch_size", "4"}})});
  return presets;
}

void expect_presets(const std::string& file, const std::vector<Preset>& presets) {
  std::vector<std::string> names;
  for (const Preset& preset : presets) {
    names.push_back(preset.name);
    const auto config = test::resolve_shipped(file, {"--config", preset.name}).config;
    for (const auto& [name, value] : preset.values) {
      EXPECT_EQ(value_text(config, *find_key(name)), value) << file << " " << preset.name << " " << name;
    }
  }
  EXPECT_EQ(test::resolve_shipped(file).presets, names) << file;
}

// Those of the examples and of the real data too.
TEST(ShippedFiles, EveryPresetOfEveryFileIsValid) {
  int count = 0;
  for (const char* folder : {"config", "examples"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(test::source_folder() / folder)) {
      if (entry.path().extension() != ".yaml") continue;
      const std::string file = std::filesystem::relative(entry.path(), test::source_folder() / "config").string();
      for (const std::string& preset : preset_names(read_configuration(entry.path().string()))) {
        EXPECT_NO_THROW(test::resolve_shipped(file, {"--config", preset})) << file << " " << preset;
        ++count;
      }
    }
  }
  EXPECT_GE(count, 59);
}

TEST(ShippedFiles, Sc21) { expect_presets("sc21/UNet.yaml", sc21_presets()); }
TEST(ShippedFiles, Sc22) { expect_presets("UNet.yaml", sc22_presets()); }
TEST(ShippedFiles, Sc23) { expect_presets("sc23/ViT.yaml", vit_presets(true)); }
TEST(ShippedFiles, Dl4sci25) { expect_presets("ViT.yaml", vit_presets(false)); }

}  // namespace
}  // namespace welkin::config
