// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/tutorial.h"

#include "harness.h"

namespace welkin::config {
namespace {

using test::resolve_error;
using test::resolve_shipped;
using test::resolve_text;
using ::testing::HasSubstr;

TEST(Tutorial, IsInferredFromTheKeysOfTheShippedFiles) {
  const std::pair<const char*, Tutorial> cases[] = {{"UNet.yaml", Tutorial::Sc22},
                                                    {"sc21/UNet.yaml", Tutorial::Sc21},
                                                    {"ViT.yaml", Tutorial::Dl4sci25},
                                                    {"sc23/ViT.yaml", Tutorial::Sc23}};
  for (const auto& [file, tutorial] : cases) EXPECT_EQ(resolve_shipped(file).config.tutorial, tutorial) << file;
}

TEST(Tutorial, DecidesModelVariantAndFolderRule) {
  EXPECT_EQ(resolve_shipped("UNet.yaml").config.model.model, "unet3d");
  EXPECT_EQ(resolve_shipped("ViT.yaml").config.model.model, "vit");
  EXPECT_EQ(resolve_shipped("ViT.yaml").config.model.qkv, QkvLayout::Separate);
  EXPECT_EQ(resolve_shipped("sc23/ViT.yaml").config.model.qkv, QkvLayout::Joint);
  EXPECT_EQ(resolve_shipped("ViT.yaml").config.output.folder_rule, FolderRule::Gpu);
  EXPECT_EQ(resolve_shipped("ViT.yaml", {"--tensor_parallel", "1"}).config.output.folder_rule, FolderRule::Mp);
  EXPECT_EQ(resolve_shipped("sc23/ViT.yaml", {"--row_parallel_size", "4", "--config=mp"}, 4).config.output.folder_rule,
            FolderRule::Mp);
}

TEST(Tutorial, FlagFixesIt) {
  const auto resolved = resolve_shipped("ViT.yaml", {"--tutorial=sc23"});
  EXPECT_EQ(resolved.config.tutorial, Tutorial::Sc23);
  EXPECT_EQ(resolved.config.model.qkv, QkvLayout::Joint);
  EXPECT_EQ(resolved.origins.at("tutorial").text, "--tutorial");
  EXPECT_THAT(
      test::config_error([] { resolve_shipped("ViT.yaml", {"--tutorial=sc22"}); }),
      HasSubstr(
          "--tutorial: the file is one of DL4SCI25 (keys embed_dim, depth, dropout without enable_fused and data_loader_config), "
          "not of SC22. Use --tutorial dl4sci25 or another file."));
}

TEST(Tutorial, AmbiguityListsTheChoices) {
  const std::string vit = "base: {embed_dim: 8, num_heads: 2, global_batch_size: 4, num_iters: 1";
  EXPECT_THAT(resolve_error(vit + ", enable_fused: true}\n"),
              HasSubstr("[config] the configuration does not tell which tutorial it belongs to: SC23 has both enable_fused and "
                        "data_loader_config, DL4SCI25 neither, this file only enable_fused. Choose one of --tutorial sc23, "
                        "--tutorial dl4sci25, "
                        "or name a model by the key `model`."));
  EXPECT_THAT(resolve_error(vit + ", full_scale: true}\n"),
              HasSubstr("it has keys of the U-Net's files (full_scale) and of the ViT's (embed_dim, num_heads)"));
  EXPECT_THAT(
      resolve_error("base: {global_batch_size: 4, num_epochs: 1}\n"),
      HasSubstr("no key of it is particular to one of them. Choose one of --tutorial sc21, --tutorial sc22, --tutorial sc23, "
                "--tutorial dl4sci25"));
  EXPECT_THAT(
      resolve_error("base: {full_scale: true, global_batch_size: 4, num_epochs: 1}\n"),
      HasSubstr("neither enable_amp (SC21) nor amp_mode (SC22) is there. Choose one of --tutorial sc21, --tutorial sc22"));
}

TEST(Tutorial, AKeyOfOursMakesItUnnecessary) {
  EXPECT_EQ(resolve_text(test::kVitFile).config.tutorial, Tutorial::None);
  EXPECT_EQ(resolve_text(test::kUnetFile).config.model.model, "unet3d");
  EXPECT_EQ(resolve_text("base: {tutorial: sc23, global_batch_size: 4, num_iters: 1}\n").config.model.qkv, QkvLayout::Joint);
}

TEST(Tutorial, KeysThatAnyFileMayAddDoNotConfuse) {
  const auto resolved = resolve_text(
      "base: {full_scale: true, amp_mode: none, global_batch_size: 4, num_epochs: 1, optimizer: AdamW, weight_decay: 0.1, "
      "schedule: linear}\n");
  EXPECT_EQ(resolved.config.tutorial, Tutorial::Sc22);
  EXPECT_EQ(resolved.config.schedule.schedule, "linear");
}

TEST(Tutorial, GivesTheDefaultFile) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(test::source_folder());
  const auto sc21 = resolve(test::command_line({"--tutorial=sc21"}), 1);
  const auto dl25 = resolve(test::command_line({"--tutorial=dl4sci25", "--config=short"}), 1);
  std::filesystem::current_path(before);
  EXPECT_THAT(sc21.config.yaml_config, ::testing::EndsWith("/config/sc21/UNet.yaml"));
  EXPECT_THAT(dl25.config.yaml_config, ::testing::EndsWith("/config/ViT.yaml"));
  EXPECT_EQ(dl25.config.config, "short");
}

}  // namespace
}  // namespace welkin::config
