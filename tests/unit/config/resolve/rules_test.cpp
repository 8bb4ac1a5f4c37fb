// SPDX-License-Identifier: Apache-2.0
// --compat and the rules that it stands for, --deterministic, TF32 and its environment variable.
#include <filesystem>
#include <regex>
#include <set>

#include "config/print/print.h"
#include "config/resolve/same_run.h"
#include "config/resolve/switches.h"
#include "config/schema/key.h"
#include "harness.h"

namespace welkin::config {
namespace {

using test::resolve_error;
using test::resolve_shipped;
using ::testing::Contains;
using ::testing::HasSubstr;

RunConfig unet(const std::vector<std::string>& flags) { return resolve_shipped("UNet.yaml", flags).config; }
RunConfig vit(const std::vector<std::string>& flags) { return resolve_shipped("ViT.yaml", flags).config; }

TEST(Rules, CorrectedOnesAreTheDefault) {
  EXPECT_EQ(unet({}).rules, RuleConfig{});
  EXPECT_EQ(vit({}).rules, RuleConfig{});
  EXPECT_EQ(unet({}).data.augment, Augmentation::Rotations);
}

TEST(Rules, CompatTurnsATutorialsOldOnesOnTogether) {
  const RuleConfig boxes{.crop_rule = CropRule::Exclusive,
                         .validation_rule = ValidationRule::Drawn,
                         .shard_rule = ShardRule::Padded,
                         .rate_rule = RateRule::Iterations};
  for (const char* compat : {"--compat=sc21", "--compat=sc22"}) {
    const RunConfig config = unet({compat});
    EXPECT_EQ(config.rules, boxes);
    EXPECT_EQ(config.schedule.schedule, "unet_tutorial");
    EXPECT_EQ(config.data.augment, Augmentation::Tutorial);
  }
  const RuleConfig fields{.pair_rule = PairRule::FirstFile,
                          .validation_rule = ValidationRule::FullBatches,
                          .shard_rule = ShardRule::Padded,
                          .length_rule = LengthRule::WholeEpochs,
                          .rate_rule = RateRule::Iterations};
  for (const char* compat : {"--compat=sc23", "--compat=dl4sci25"}) {
    EXPECT_EQ(vit({compat}).rules, fields);
    EXPECT_EQ(vit({compat}).schedule.schedule, "vit_tutorial");
  }
}

// DALI's loaders have rules of their own: fewer samples, a consumed first batch, other orientations.
TEST(Rules, CompatKnowsTheDaliLoaders) {
  const RunConfig sc21 = unet({"--compat=sc21", "--data_loader_config=dali-lowmem"});
  EXPECT_EQ(sc21.rules.shard_rule, ShardRule::Truncated);
  EXPECT_EQ(sc21.rules.first_batch_rule, FirstBatchRule::Consumed);
  EXPECT_EQ(sc21.data.augment, Augmentation::Octahedral);
  EXPECT_EQ(unet({"--compat=sc22", "--config=short_opt"}).data.augment, Augmentation::Flips);
  const RunConfig sc23 = resolve_shipped("sc23/ViT.yaml", {"--compat=sc23", "--data_loader_config=dali"}).config;
  EXPECT_EQ(sc23.rules.shard_rule, ShardRule::Truncated);
  EXPECT_EQ(sc23.rules.first_batch_rule, FirstBatchRule::Consumed);
}

TEST(Rules, EachCanBeSwitchedAlone) {
  const RunConfig config = unet({"--compat=sc22", "--set=crop_rule=inclusive", "--set=rules.validation_rule=every_sample",
                                 "--set=augment=rotations", "--set=schedule=cosine"});
  EXPECT_EQ(config.rules.crop_rule, CropRule::Inclusive);
  EXPECT_EQ(config.rules.validation_rule, ValidationRule::EverySample);
  EXPECT_EQ(config.rules.rate_rule, RateRule::Iterations);
  EXPECT_EQ(config.data.augment, Augmentation::Rotations);
  EXPECT_EQ(config.schedule.schedule, "cosine");
  const RunConfig alone = vit({"--set=pair_rule=first_file"});
  EXPECT_EQ(alone.rules.pair_rule, PairRule::FirstFile);
  EXPECT_EQ(alone.rules.validation_rule, ValidationRule::EverySample);
  EXPECT_EQ(vit({"--compat=sc23", "--set=schedule=cosine"}).schedule.schedule, "cosine");
}

TEST(Rules, AnUnknownOneIsRefused) {
  EXPECT_THAT(
      resolve_error(test::kVitFile, {"--set=pair_rule=first"}),
      HasSubstr(
          "pair_rule is none of each_file, first_file: pair_rule=first. Meaning: each_file: every pair of every year once"));
}

// What is saved with a run says the rules in full, so that it loads to the same ones, own choices included.
TEST(Rules, AreSavedWithTheRun) {
  for (const auto& flags : std::vector<std::vector<std::string>>{
           {"--compat=dl4sci25"}, {"--compat=sc23", "--set=schedule=cosine", "--set=length_rule=exact"}, {"--deterministic"}}) {
    const RunConfig config = vit(flags);
    const RunConfig loaded = from_yaml(yaml(config), "saved", 1);
    EXPECT_EQ(loaded.rules, config.rules);
    EXPECT_EQ(loaded.schedule, config.schedule);
    EXPECT_EQ(loaded.loop.compat, config.loop.compat);
    EXPECT_EQ(loaded.loop.deterministic, config.loop.deterministic);
    EXPECT_EQ(saved_values(yaml(config), "saved").rules, config.rules);
  }
}

TEST(Rules, StandInTheDumpOfTheLog) {
  const auto lines = dump_lines(resolve_shipped("UNet.yaml", {"--compat=sc22", "--deterministic"}));
  for (const char* line : {"compat sc22", "crop_rule exclusive", "validation_rule drawn", "rate_rule iterations",
                           "augment tutorial", "schedule unet_tutorial", "deterministic True"}) {
    EXPECT_THAT(lines, Contains(line));
  }
  for (const std::string& line : dump_lines(resolve_shipped("UNet.yaml"))) {
    EXPECT_THAT(line, ::testing::Not(HasSubstr("rule"))) << "the tutorials' dump";
    EXPECT_THAT(line, ::testing::Not(::testing::StartsWith("schedule"))) << "the tutorials' dump";
  }
}

TEST(Rules, ArePinnedToTheRun) {
  EXPECT_EQ(pinned_difference(unet({}), unet({"--seed=4"})), "");
  EXPECT_EQ(pinned_difference(unet({"--set=crop_rule=exclusive"}), unet({})), "crop_rule=exclusive and inclusive");
  EXPECT_THAT(pinned_difference(unet({"--compat=sc21"}), unet({"--compat=sc22"})), HasSubstr("compat=sc21 and sc22"));
}

TEST(Deterministic, TurnsCudnnsMeasuringOff) {
  EXPECT_TRUE(vit({}).backend.cudnn_benchmark);
  EXPECT_FALSE(vit({}).backend.cudnn_deterministic);
  const Resolved resolved = resolve_shipped("ViT.yaml", {"--deterministic"});
  EXPECT_FALSE(resolved.config.backend.cudnn_benchmark);
  EXPECT_TRUE(resolved.config.backend.cudnn_deterministic);
  EXPECT_EQ(resolved.origins.at("backend.cudnn_benchmark").text, "from deterministic");
  EXPECT_THAT(resolve_error(test::kVitFile, {"--deterministic", "--cudnn_benchmark"}),
              HasSubstr("--cudnn_benchmark: two keys contradict each other: deterministic=true (--deterministic), "
                        "cudnn_benchmark=true (--cudnn_benchmark). Give only one"));
}

TEST(ChannelsLast, IsTheLayoutOfAUnetsBoxes) {
  const Resolved resolved = resolve_shipped("UNet.yaml", {});
  EXPECT_TRUE(resolved.config.backend.channels_last);
  EXPECT_EQ(resolved.origins.at("backend.channels_last").text, "from model unet3d");
  EXPECT_FALSE(unet({"--no-channels_last"}).backend.channels_last);
  EXPECT_FALSE(vit({}).backend.channels_last);
  EXPECT_TRUE(vit({"--channels_last"}).backend.channels_last);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Suite.Name of every test, from the sources.
std::set<std::string> test_names() {
  std::set<std::string> names;
  const std::regex pattern("TEST(?:_F|_P)?\\(\\s*(\\w+),\\s*(\\w+)\\)");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::source_folder() / "tests")) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = text_of(entry.path());
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
      names.insert((*match)[1].str() + "." + (*match)[2].str());
    }
  }
  return names;
}

// The file of this name in a folder or one of its own; empty: there is none.
std::filesystem::path found_below(const std::filesystem::path& folder, const std::string& name) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == name) return entry.path();
  }
  return {};
}

TEST(DefectsDocument, NamesTestsThatExistAndEveryRule) {
  const std::string text = text_of(test::source_folder() / "docs" / "reference" / "defects.md");
  const std::set<std::string> names = test_names();
  const std::regex pattern("\\b([A-Z]\\w+\\.[A-Z]\\w+)");
  int found = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match, ++found) {
    EXPECT_TRUE(names.contains((*match)[1])) << (*match)[1];
  }
  EXPECT_GT(found, 30);
  const std::regex script_test("(\\w+_test\\.py): (test_\\w+)");
  int in_scripts = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), script_test), end; match != end; ++match, ++in_scripts) {
    const std::string script = text_of(found_below(test::source_folder() / "tests" / "distributed", (*match)[1].str()));
    EXPECT_THAT(script, HasSubstr("def " + (*match)[2].str() + "(self):"));
  }
  EXPECT_GT(in_scripts, 3);
  // Every defect's row ends in a test.
  const std::regex row("\\| (D[0-9]+) \\|.*\\| ([^|]*) \\|\n");
  for (std::sregex_iterator match(text.begin(), text.end(), row), end; match != end; ++match) {
    const std::string test = (*match)[2];
    EXPECT_TRUE(std::regex_search(test, pattern) || std::regex_search(test, script_test)) << (*match)[1] << ": " << test;
  }
  for (int number = 1; number <= 35; ++number) EXPECT_THAT(text, HasSubstr("| D" + std::to_string(number) + " |"));
  for (const Key& key : rule_keys()) EXPECT_THAT(text, HasSubstr("| `" + std::string(key.flat) + "` |"));
}

// The variable as the test wants it; the process' own is put back.
class Tf32Override {
 public:
  explicit Tf32Override(const char* value) {
    if (const char* before = std::getenv(kName)) before_ = before;
    set(value);
  }
  ~Tf32Override() { set(before_ ? before_->c_str() : nullptr); }
  Tf32Override(const Tf32Override&) = delete;
  Tf32Override& operator=(const Tf32Override&) = delete;

 private:
  static void set(const char* value) { value == nullptr ? unsetenv(kName) : setenv(kName, value, 1); }

  static constexpr const char* kName = "NVIDIA_TF32_OVERRIDE";
  std::optional<std::string> before_;
};

TEST(Tf32, IsOnUnlessAFlagOrTheEnvironmentTurnsItOff) {
  const Tf32Override none(nullptr);
  EXPECT_EQ(vit({}).backend.tf32, Tf32::On);
  EXPECT_EQ(vit({"--tf32", "off"}).backend.tf32, Tf32::Off);
  const Tf32Override zero("0");
  const Resolved resolved = resolve_shipped("ViT.yaml", {"--tf32=on"});
  EXPECT_EQ(resolved.config.backend.tf32, Tf32::Off) << "NVIDIA's libraries read it too, whatever the program asks for";
  EXPECT_EQ(resolved.origins.at("backend.tf32").text, "NVIDIA_TF32_OVERRIDE=0");
  EXPECT_THAT(resolved.notes, Contains("--tf32 on has no effect: the environment has NVIDIA_TF32_OVERRIDE=0"));
  const Tf32Override one("1");
  EXPECT_EQ(vit({}).backend.tf32, Tf32::On);
}

TEST(Tf32, StateAndOriginArePrinted) {
  const Tf32Override none(nullptr);
  const Resolved resolved = resolve_shipped("ViT.yaml", {"--tf32=off", "--deterministic", "--no-cudnn_enabled"});
  EXPECT_EQ(backend_note(resolved, DeviceKind::Cuda),
            "Matmuls in fp32: tf32 off (--tf32), cudnn_enabled off (--cudnn_enabled), cudnn_benchmark off (from deterministic), "
            "cudnn_deterministic on (from deterministic)");
  EXPECT_THAT(backend_note(resolved, DeviceKind::Cpu), HasSubstr("; no effect on a CPU"));
  EXPECT_THAT(table(resolved, 1), ::testing::ContainsRegex("tf32 +off +--tf32"));
}

}  // namespace
}  // namespace welkin::config
