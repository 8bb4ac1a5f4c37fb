// SPDX-License-Identifier: Apache-2.0
// Precedence, provenance, synonyms, batch sizes, the file level and what `None` means.
#include "config/resolve/resolve.h"

#include <filesystem>

#include "config/draft/channel_settings.h"
#include "config/draft/origin.h"
#include "config/print/print.h"
#include "core/text.h"
#include "harness.h"

namespace welkin::config {
namespace {

using test::resolve_error;
using test::resolve_shipped;
using test::resolve_text;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST(Resolve, DefaultFilePresetFlag) {
  const std::string text =
      "seed: 1\nbase:\n  model: vit\n  global_batch_size: 4\n  num_iters: 5\nother:\n  model: vit\n  seed: 2\n  "
      "global_batch_size: 4\n  num_iters: 5\n";
  EXPECT_EQ(resolve_text(test::kVitFile).config.loop.seed, 0u);
  EXPECT_EQ(resolve_text(text).config.loop.seed, 1u);
  EXPECT_EQ(resolve_text(text, {"--config=other"}).config.loop.seed, 2u);
  EXPECT_EQ(resolve_text(text, {"--config=other", "--seed=3"}).config.loop.seed, 3u);
  EXPECT_EQ(resolve_text(text, {"--set", "loop.seed=4", "--seed=3"}).config.loop.seed, 3u) << "the later one wins";
}

TEST(Resolve, EveryValueKnowsWhereItCameFrom) {
  const auto resolved = resolve_text(test::kVitFile, {"--num_iters=7", "--set", "optimizer.lr=1e-3"});
  EXPECT_EQ(resolved.origins.at("loop.global_batch_size").text, "run.yaml:3");
  EXPECT_EQ(resolved.origins.at("loop.global_batch_size").layer, Layer::Preset);
  EXPECT_EQ(resolved.origins.at("loop.num_iters").text, "--num_iters");
  EXPECT_EQ(resolved.origins.at("optimizer.lr").text, "--set optimizer.lr");
  EXPECT_EQ(resolved.origins.at("schedule.start_lr").text, "from lr");
  EXPECT_EQ(resolved.origins.at("model.depth").text, "default");
  EXPECT_EQ(resolve_shipped("UNet.yaml", {"--config=short"}).origins.at("loop.num_epochs").layer, Layer::Preset);
}

// D12: the tutorials' programs let an absent switch overwrite the file.
TEST(Resolve, UnsetFlagsNeverOverrideTheFile) {
  const auto optimized = resolve_shipped("UNet.yaml", {"--config=short_opt"}).config;
  EXPECT_TRUE(optimized.switches.enable_apex);
  EXPECT_TRUE(optimized.switches.enable_jit);
  EXPECT_TRUE(resolve_shipped("sc23/ViT.yaml", {"--config=opt"}).config.switches.enable_fused);
  EXPECT_TRUE(resolve_shipped("sc21/UNet.yaml", {"--config=short_opt"}).config.precision.enable_amp);
  EXPECT_FALSE(resolve_shipped("UNet.yaml", {"--config=short_opt", "--no-enable_jit"}).config.switches.enable_jit);
  EXPECT_EQ(resolve_shipped("UNet.yaml", {"--num_data_workers=0"}).config.data.num_data_workers, 0);
}

TEST(Resolve, AListOfNamesIsAFlagWithCommas) {
  using Names = std::vector<std::string>;
  const auto stopping = [](const std::string& flag) { return resolve_text(test::kVitFile, {flag}).config.loop.early_stopping; };
  EXPECT_EQ(stopping("--early_stopping=val_loss,5"), (Names{"val_loss", "5"}));
  EXPECT_EQ(stopping("--early_stopping=[val_loss, 5, 1e-3]"), (Names{"val_loss", "5", "1e-3"}));
  EXPECT_EQ(stopping("--early_stopping=RMSE(it's)/valid,5"), (Names{"RMSE(it's)/valid", "5"}));
  EXPECT_EQ(stopping("--early_stopping=[]"), Names());
  EXPECT_EQ(resolve_text(test::kVitFile, {"--freeze", "*.bias,blocks.?.norm*"}).config.optimizer.freeze,
            (Names{"*.bias", "blocks.?.norm*"}));
  EXPECT_EQ(resolve_text("base: {model: vit, global_batch_size: 4, num_iters: 5, freeze: ['*'], early_stopping: [val_loss, 3]}\n")
                .config.loop.early_stopping,
            (Names{"val_loss", "3"}));
}

TEST(Resolve, PrecisionSynonyms) {
  EXPECT_EQ(resolve_shipped("UNet.yaml", {"--config=short_opt", "--amp_mode=none"}).config.precision.amp_mode, AmpMode::None);
  EXPECT_EQ(resolve_shipped("sc21/UNet.yaml", {"--config=short_opt"}).config.precision.amp_mode, AmpMode::Fp16);
  EXPECT_EQ(resolve_shipped("sc21/UNet.yaml", {"--config=short_opt", "--amp_mode=bf16"}).config.precision.amp_mode,
            AmpMode::Bf16);
  EXPECT_EQ(resolve_shipped("sc21/UNet.yaml", {"--config=short_opt", "--no-enable_amp"}).config.precision.amp_mode,
            AmpMode::None);
  EXPECT_EQ(resolve_shipped("UNet.yaml", {"--enable_amp"}).config.precision.amp_mode, AmpMode::Fp16);
  EXPECT_THAT(resolve_error("base: {model: vit, global_batch_size: 4, num_iters: 1, amp_mode: bf16, enable_amp: false}\n"),
              HasSubstr("run.yaml:1: two keys contradict each other: amp_mode=bf16 (run.yaml:1), enable_amp=false (run.yaml:1). "
                        "Give only one"));
}

TEST(Resolve, RateSynonyms) {
  const auto vit = resolve_shipped("ViT.yaml", {"--config=bs32_opt"}).config;
  EXPECT_EQ(vit.optimizer.lr, 7.07e-4);
  EXPECT_EQ(vit.schedule.start_lr, 7.07e-4);
  EXPECT_EQ(resolve_shipped("UNet.yaml").config.optimizer.lr, 2e-4);
  EXPECT_EQ(resolve_shipped("UNet.yaml", {"--set=lr=1e-3"}).config.schedule.start_lr, 1e-3);
  EXPECT_EQ(resolve_text(test::kUnetFile).config.schedule.start_lr, 2e-4);
  EXPECT_EQ(resolve_text(test::kVitFile).config.schedule.start_lr, 5e-4);
  // A preset's own spelling beats the inherited other one.
  EXPECT_EQ(resolve_text(
                "a: &a {model: vit, lr: 1, global_batch_size: 4, num_iters: 1}\nbase: {<<: *a, lr_schedule: {start_lr: 0.5}}\n")
                .config.optimizer.lr,
            0.5);
}

TEST(Resolve, LengthIsStatedOnce) {
  const auto by_epochs = resolve_shipped("ViT.yaml", {"--num_epochs=2"}).config.loop;
  EXPECT_EQ(by_epochs.num_epochs, 2);
  EXPECT_EQ(by_epochs.num_iters, 0);
  const auto by_iters = resolve_shipped("UNet.yaml", {"--num_iters=2"}).config.loop;
  EXPECT_EQ(by_iters.num_epochs, 0);
  EXPECT_THAT(resolve_error("base: {model: vit, global_batch_size: 4, num_iters: 1, num_epochs: 2}\n"),
              HasSubstr("two keys contradict each other: num_epochs=2 (run.yaml:1), num_iters=1 (run.yaml:1)"));
}

TEST(Resolve, BatchSizesByWorldSize) {
  EXPECT_EQ(resolve_shipped("UNet.yaml", {}, 4).config.loop.local_batch_size, 16);
  EXPECT_EQ(resolve_shipped("UNet.yaml", {"--local_batch_size=16"}, 8).config.loop.global_batch_size, 128);
  const auto mesh = resolve_shipped("ViT.yaml", {"--config=mp", "--tensor_parallel=2", "--context_parallel=2"}, 8).config.loop;
  EXPECT_EQ(mesh.global_batch_size, 64);
  EXPECT_EQ(mesh.local_batch_size, 32);
  EXPECT_THAT(test::config_error([] { resolve_shipped("UNet.yaml", {}, 3); }),
              HasSubstr("the batch cannot be split evenly: global_batch_size=64 ("));
  EXPECT_THAT(resolve_error("base: {model: vit, global_batch_size: 4, local_batch_size: 3, num_iters: 1}\n"),
              HasSubstr("two keys contradict each other: global_batch_size=4 (run.yaml:1), local_batch_size=3 (run.yaml:1)"));
}

TEST(Resolve, TensorParallelHasTwoNames) {
  EXPECT_EQ(resolve_shipped("sc23/ViT.yaml", {"--row_parallel_size=4"}, 4).config.parallel.tensor_parallel, 4);
  EXPECT_EQ(resolve_shipped("ViT.yaml", {"--tensor_parallel=4"}, 4).config.parallel.row_parallel_size, 4);
}

TEST(Resolve, NoneIsNullAtTheTopLevelOnly) {
  EXPECT_FALSE(resolve_shipped("ViT.yaml").config.data.limit_nsamples.has_value());
  EXPECT_FALSE(resolve_text("base: {model: vit, global_batch_size: 4, num_iters: 1, limit_nsamples: 'None'}\n")
                   .config.data.limit_nsamples);
  EXPECT_FALSE(resolve_shipped("ViT.yaml", {"--config=short", "--set=limit_nsamples=None"}).config.data.limit_nsamples);
  EXPECT_FALSE(resolve_text("base: {model: unet3d, global_batch_size: 4, num_epochs: 1, weight_init: {conv_bias: null}}\n")
                   .config.model.weight_init.conv_bias);
  EXPECT_THAT(resolve_error("base: {model: unet3d, global_batch_size: 4, num_epochs: 1, weight_init: {conv_bias: None}}\n"),
              HasSubstr("weight_init.conv_bias wants a number, is a string (None)"));
}

TEST(Resolve, EveryKeyIsReachableFlatAndDotted) {
  const auto config =
      resolve_text(test::kVitFile, {"--set=embed_dim=16", "--set=model.num_heads=4", "--set=img_size=[32, 64]",
                                    "--set=forcing=[solar, calendar]", "--set=options.alpha=0.5", "--set=run_num=07"})
          .config;
  EXPECT_EQ(config.model.embed_dim, 16);
  EXPECT_EQ(config.model.num_heads, 4);
  EXPECT_EQ(config.model.img_size, (std::vector<int64_t>{32, 64}));
  EXPECT_EQ(config.data.forcing, (std::vector<std::string>{"solar", "calendar"}));
  EXPECT_EQ(config.options.at("alpha"), "0.5");
  EXPECT_EQ(config.output.run_num, "07");
  const auto nested =
      resolve_text(
          "base:\n  model: {model: vit, embed_dim: 16}\n  loop: {global_batch_size: 4, num_iters: 1}\n  options: {a: x, b: 2}\n")
          .config;
  EXPECT_EQ(nested.model.embed_dim, 16);
  EXPECT_EQ(nested.options, (std::map<std::string, std::string>{{"a", "x"}, {"b", "2"}}));
}

TEST(Resolve, FilesWithoutPresetsAndRunsWithoutFile) {
  const auto flat = resolve_text("model: vit\nglobal_batch_size: 4\nnum_iters: 1\n");
  EXPECT_EQ(flat.config.config, "base");
  EXPECT_EQ(flat.origins.at("loop.num_iters").layer, Layer::File);
  const auto none = resolve(test::command_line({"--set=model=vit", "--set=global_batch_size=4", "--num_iters=1"}), 1);
  EXPECT_EQ(none.config.yaml_config, "");
  EXPECT_EQ(none.config.data.dataset, "era5");
}

TEST(Resolve, CompatChoosesTheOldRules) {
  const auto unet = resolve_shipped("UNet.yaml", {"--compat=sc22"}).config;
  EXPECT_EQ(unet.schedule.schedule, "unet_tutorial");
  EXPECT_EQ(unet.data.augment, Augmentation::Tutorial);
  EXPECT_EQ(resolve_shipped("ViT.yaml", {"--compat=dl4sci25"}).config.schedule.schedule, "vit_tutorial");
  EXPECT_EQ(resolve_shipped("ViT.yaml", {"--compat=dl4sci25", "--set=schedule=cosine"}).config.schedule.schedule, "cosine");
  EXPECT_EQ(resolve_shipped("UNet.yaml").config.schedule.schedule, "cosine");
}

TEST(Resolve, KnownKeysWithoutEffectGiveOneNote) {
  const auto notes = resolve_shipped("ViT.yaml", {"--set=Nsamples=5"}).notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "known keys without effect in this run: Nsamples, wireup_info");
}

TEST(Resolve, RefusesMissingFilesAndPresets) {
  EXPECT_THAT(test::config_error([] { resolve(test::command_line({"--yaml_config=nowhere.yaml"}), 1); }),
              HasSubstr("[config] the file does not exist: --yaml_config nowhere.yaml. Looked in "));
  EXPECT_THAT(test::config_error([] { resolve(test::command_line({}), 1); }),
              HasSubstr("no configuration is given. Give --yaml_config FILE, or --tutorial"));
  EXPECT_THAT(test::config_error([] {
                resolve(test::command_line({"--set=model=vit", "--config=x"}), 1);
              }),
              HasSubstr("a preset is named, but no file: --config x. Give --yaml_config FILE."));
  EXPECT_THAT(resolve_error("base: {}\nshort: {}\nshort_opt: {}\n", {"--config=shrt"}),
              HasSubstr("run.yaml: unknown preset: --config shrt. Nearest: short. Presets of the file: base, short, short_opt."));
  EXPECT_THAT(resolve_error("model: vit\n", {"--config=x"}), HasSubstr("unknown preset: --config x. The file has no presets."));
  EXPECT_THAT(resolve_error("base: {}\noptions: {a: 1}\n", {"--config=options"}),
              HasSubstr("run.yaml:2: no preset but settings for all presets: --config options. A preset is a mapping under"));
  EXPECT_THAT(test::config_error([] { resolve(test::command_line({"--yaml_config=/"}), 1); }),
              HasSubstr("the file cannot be read: /"));
  const test::YamlFile folder("");
  EXPECT_THAT(
      test::config_error([] { resolve(test::command_line({"--tutorial=sc22"}), 1); }),
      HasSubstr(cat("the default file of --tutorial sc22 does not exist: config/sc22/UNet.yaml, config/UNet.yaml. Looked in ",
                    std::filesystem::current_path().string(),
                    ". Give --yaml_config FILE, or start where the shipped folder config/ is: in the sources, or in "
                    "share/welkin of an installed folder.")));
}

// Any run with the file would meet "unknown key: loss.lr".
TEST(Resolve, APresetWithTheNameOfAComponentIsRefusedByName) {
  const std::string text = "base: &base\n  model: vit\nloss:\n  <<: *base\n  lr: 1.E-3\n  depth: 2\n";
  for (const char* preset : {"--config=base", "--config=loss"}) {
    EXPECT_THAT(
        resolve_error(text, {preset}),
        HasSubstr("run.yaml:3: a preset cannot have the name of a component: loss, whose settings these would be: loss.lr "
                  "and 2 more. Rename the preset, for instance to loss_run. If settings for all presets are meant, take lr "
                  "and 2 more out of loss, to the left margin"));
  }
  EXPECT_THAT(resolve_error("base: {}\nmodel: {depht: 2}\n", {"--config=base"}), HasSubstr("unknown key: model.depht=2"));
}

TEST(Resolve, AMapOnTheCommandLineIsThatOfAFile) {
  const auto set = [](const char* setting) { return resolve_text(test::kVitFile, {cat("--set=", setting)}).config; };
  const RunConfig schedule = set("lr_schedule={start_lr: 1e-3, warmup_steps: 4}");
  EXPECT_EQ(schedule.schedule.start_lr, 1e-3);
  EXPECT_EQ(schedule.schedule.warmup_steps, 4);
  EXPECT_EQ(schedule.optimizer.lr, 1e-3);
  EXPECT_EQ(set("optimizer={optimizer: SGD, momentum: 0.5}").optimizer.momentum, 0.5);
  EXPECT_EQ(set("weight_init={conv_scale: 0.5}").model.weight_init.conv_scale, 0.5);
  EXPECT_THAT(resolve_error(test::kVitFile, {"--set=img_size=16,32"}),
              HasSubstr("img_size wants a list, is a string (16,32). A list is written [a, b]. Meaning: latitudes"));
}

TEST(Resolve, NamesOfChannelsSayHowManyThereAre) {
  const auto chosen = [](const std::vector<std::string>& flags) { return test::resolve_text(test::kVitFile, flags).config; };
  RunConfig config = chosen({"--set=in_channels=[a, b, c]"});
  EXPECT_EQ(config.model.n_in_channels, 3);
  EXPECT_EQ(config.model.n_out_channels, 3);
  EXPECT_EQ(config.data.out_channels, (std::vector<std::string>{"a", "b", "c"}));
  config = chosen({"--set=in_channels=[a, b, c]", "--set=out_channels=[c]"});
  EXPECT_EQ(config.model.n_out_channels, 1);
  config = chosen({"--set=out_channels=[c]"});
  EXPECT_TRUE(config.data.in_channels.empty());
  EXPECT_EQ(config.model.n_in_channels, RunConfig{}.model.n_in_channels);
  EXPECT_EQ(chosen({"--set=n_in_channels=7", "--set=in_channels=[a]"}).model.n_in_channels, 1) << "the later flag holds";
  EXPECT_THAT(test::resolve_error(test::kVitFile, {"--set=in_channels=[a]", "--set=n_out_channels=7"}),
              HasSubstr("two keys contradict each other: out_channels=[a] (from in_channels), n_out_channels=7 (--set "
                        "n_out_channels)"));
}

TEST(Resolve, AnArchiveSaysItsChannelsTimesAndLevels) {
  const std::string file =
      "base:\n  model: vit\n  global_batch_size: 4\n  num_iters: 10\n  variables: [2m_temperature, geopotential@500]\n"
      "  levels: [500, 850]\n  train_times: [1979, 2015]\n  valid_times: [2016, 2016-06]\n";
  const RunConfig config = test::resolve_text(file).config;
  EXPECT_EQ(config.data.variables, (std::vector<std::string>{"2m_temperature", "geopotential@500"}));
  EXPECT_EQ(config.data.train_times, (std::vector<std::string>{"1979", "2015"}));
  EXPECT_EQ(config.model.n_in_channels, 0) << "as many as the archive gives";
  EXPECT_EQ(from_yaml(yaml(config), "saved", 1).data, config.data);
  EXPECT_THAT(test::resolve_error(file, {"--set=stage=/tmp"}), HasSubstr("an archive is not copied to the node: stage=/tmp"));
  EXPECT_THAT(test::resolve_error(test::kVitFile, {"--set=train_times=[1979, 2015]"}),
              HasSubstr("this chooses of an archive, whose variables are not named: train_times=["));
}

TEST(Resolve, SeveralDataSetsHaveWeights) {
  const auto chosen = [](const std::string& entries, const std::string& more = "") {
    return "base:\n  model: vit\n  global_batch_size: 4\n  num_iters: 10\n  datasets: " + entries + "\n" + more;
  };
  const RunConfig config = test::resolve_text(chosen("[/data/era5=3, /data/cmip6]"), {"--data_root=/somewhere"}).config;
  EXPECT_EQ(config.data.datasets, (std::vector<std::string>{"/somewhere/era5=3", "/somewhere/cmip6"}));
  EXPECT_EQ(parse_data_set(config.data.datasets[0]).value().weight, 3);
  EXPECT_EQ(parse_data_set(config.data.datasets[1]).value().folder, "/somewhere/cmip6");
  for (const char* bad : {"[a=0]", "[a=-1]", "[a=x]", "[=1]"}) {
    EXPECT_THAT(test::resolve_error(chosen(bad)), HasSubstr("an entry is no FOLDER=weight")) << bad;
  }
  EXPECT_EQ(test::resolve_text(chosen("[a=1]", "  multistep: 2\n")).config.loss.multistep.most(), 2);
  EXPECT_EQ(test::resolve_text(chosen("[a=1]", "  variables: [t2m]\n")).config.data.variables.size(), 1U);
  EXPECT_THAT(test::resolve_error(chosen("[a=1]", "  stage: /tmp\n")), HasSubstr("several data sets are not copied to the node"));
}

TEST(Resolve, ACropIsAPlaceOrRangesOfDegrees) {
  const std::string file = "base:\n  model: vit\n  global_batch_size: 4\n  num_iters: 10\n";
  EXPECT_EQ(test::resolve_text(file + "  crop: [3, 4]\n").config.data.crop, (std::vector<int64_t>{3, 4}));
  const RunConfig config = test::resolve_text(file + "  crop: {lat: [35, 60], lon: [-10, 20]}\n").config;
  EXPECT_EQ(config.data.crop_lat, (std::vector<double>{35, 60}));
  EXPECT_EQ(config.data.crop_lon, (std::vector<double>{-10, 20}));
  EXPECT_TRUE(config.data.crop.empty());
  EXPECT_EQ(from_yaml(yaml(config), "saved", 1).data, config.data);
  EXPECT_EQ(test::resolve_text(file, {"--set=crop.lat=[35, 60]"}).config.data.crop_lat, config.data.crop_lat);
  const auto refused = [&](const std::string& flag) { return test::resolve_error(file, {"--set=crop=[1, 1]", flag}); };
  EXPECT_THAT(
      refused("--set=crop.lat=[35, 60]"),
      HasSubstr("two keys contradict each other: crop=[1, 1] (--set crop), crop.lat=[35.0, 60.0] (--set crop.lat). Give only "
                "one of them"));
  EXPECT_THAT(refused("--set=crop.lat=[60, 35]"),
              HasSubstr("a range that is none: crop.lat=[60.0, 35.0] (--set crop.lat). Give south "
                        "and north, as in crop: {lat: [35, 60]}"));
  EXPECT_THAT(refused("--set=crop.lon=[-190, 200]"),
              HasSubstr("Give west and east, at most 360 apart, as in crop: {lon: [-10, 20]}"));
  EXPECT_THAT(refused("--set=crop.lat=[35, 95]"), HasSubstr("crop.lat element 1 must be at most 90"));
}

TEST(Resolve, NamesOfChannelsOfABoxAreOfEachSideItsOwn) {
  const RunConfig config = test::resolve_text(test::kUnetFile, {"--set=in_channels=[a, b]"}).config;
  EXPECT_EQ(config.model.N_in_channels, 2);
  EXPECT_EQ(config.model.N_out_channels, RunConfig{}.model.N_out_channels);
  EXPECT_TRUE(config.data.out_channels.empty());
  EXPECT_EQ(config.model.n_in_channels, RunConfig{}.model.n_in_channels);
  EXPECT_EQ(test::resolve_text(test::kUnetFile, {"--set=out_channels=[rho]"}).config.model.N_out_channels, 1);
  EXPECT_THAT(test::resolve_error(test::kUnetFile, {"--set=in_channels=[a, b, a]"}),
              HasSubstr("a channel is named twice: channel=a"));
}

TEST(Resolve, AForcingIsNamedOnce) {
  EXPECT_THAT(test::resolve_error(test::kVitFile, {"--set=forcing=[solar, calendar, solar]"}),
              HasSubstr("a forcing is named twice: forcing=solar, forcing=[solar, calendar, solar] (--set forcing). Name each "
                        "forcing once"));
}

}  // namespace
}  // namespace welkin::config
