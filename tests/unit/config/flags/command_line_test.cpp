// SPDX-License-Identifier: Apache-2.0
#include "config/flags/command_line.h"

#include <sstream>

#include "config/flags/flag.h"
#include "harness.h"

namespace welkin::config {
namespace {

using test::command_line;
using ::testing::HasSubstr;

std::string parse_arguments_error(const std::vector<std::string>& arguments) {
  return test::config_error([&] { command_line(arguments); });
}

TEST(CommandLine, TakesEveryFlagOfTheTutorials) {
  const char* values[] = {"run_num",           "yaml_config",       "config",          "amp_mode",         "data_loader_config",
                          "local_batch_size",  "num_epochs",        "num_iters",       "num_data_workers", "bucket_cap_mb",
                          "row_parallel_size", "col_parallel_size", "tensor_parallel", "context_parallel", "parallel_order"};
  const char* switches[] = {"enable_amp",
                            "enable_apex",
                            "enable_fused",
                            "enable_jit",
                            "enable_benchy",
                            "enable_manual_profiling",
                            "disable_broadcast_buffers",
                            "noddp"};
  const auto flags = all_flags({});
  for (const char* name : values) {
    EXPECT_EQ(find_flag(flags, name, Tutorial::None).kind, FlagKind::Value) << name;
    EXPECT_NE(find_flag(flags, name, Tutorial::None).tutorials, 0) << name;
  }
  for (const char* name : switches) EXPECT_EQ(find_flag(flags, name, Tutorial::None).kind, FlagKind::Switch) << name;
}

TEST(CommandLine, ReadsBothFormsAndPrefixes) {
  const auto line = command_line({"--num_epochs", "3", "--config=short", "--local=16", "--num_d", "0", "--bucket", "-1"});
  EXPECT_EQ(line.config, "short");
  ASSERT_EQ(line.settings.size(), 4u);
  EXPECT_EQ(line.settings[0].key, "loop.num_epochs");
  EXPECT_EQ(line.settings[0].text, "3");
  EXPECT_EQ(line.settings[0].flag, "--num_epochs");
  EXPECT_EQ(line.settings[1].key, "loop.local_batch_size");
  EXPECT_EQ(line.settings[2].text, "0");
  EXPECT_EQ(line.settings[3].text, "-1");
}

TEST(CommandLine, PrefixesOfTutorialsComeBeforeOurs) {
  EXPECT_EQ(command_line({"--data=dali"}).settings[0].key, "data.data_loader_config");  // data_root is ours
  EXPECT_EQ(command_line({"--data_r=x"}).settings[0].key, "data.data_root");
  EXPECT_EQ(command_line({"--tutorial=sc22", "--enable_a"}).settings[0].key, "switches.enable_apex");
}

TEST(CommandLine, AxesHaveShortNames) {
  const auto line = command_line({"--tp", "2", "--cp=4", "--sp", "--no-sp"});
  ASSERT_EQ(line.settings.size(), 4u);
  EXPECT_EQ(line.settings[0].key, "parallel.tensor_parallel");
  EXPECT_EQ(line.settings[1].key, "parallel.context_parallel");
  EXPECT_EQ(line.settings[1].text, "4");
  EXPECT_EQ(line.settings[2].key, "parallel.sequence_parallel");
  EXPECT_EQ(line.settings[3].text, "false");
}

TEST(CommandLine, SwitchesHaveThreeStates) {
  EXPECT_TRUE(command_line({}).settings.empty());
  EXPECT_EQ(command_line({"--enable_jit"}).settings[0].text, "true");
  for (const char* off : {"--no-enable_jit", "--no_enable_jit", "--enable_jit=false"})
    EXPECT_EQ(command_line({off}).settings[0].text, "false");
  EXPECT_EQ(command_line({"--noddp"}).settings[0].text, "true");
  EXPECT_EQ(command_line({"--no-noddp"}).settings[0].text, "false");
}

TEST(CommandLine, SteeringFlags) {
  const auto line =
      command_line({"--dry_run=yaml", "--check_data", "--tutorial", "sc23", "--set", "lr=1e-3", "--set=betas=[0.9, 0.99]"});
  EXPECT_EQ(line.dry_run, DryRun::Yaml);
  EXPECT_TRUE(line.check_data);
  EXPECT_EQ(line.tutorial, Tutorial::Sc23);
  EXPECT_EQ(line.settings[0].flag, "--set lr");
  EXPECT_EQ(line.settings[1].text, "[0.9, 0.99]");
  EXPECT_EQ(command_line({"--dry_run", "--config=x"}).dry_run, DryRun::Table);
}

TEST(CommandLine, VerbsAddFlags) {
  const auto line = command_line({"--checkpoint", "DIR/step_3", "--best"},
                                 {{"checkpoint", "DIR", "what to load"}, {"best", "", "the best one"}});
  EXPECT_EQ(line.extra.at("checkpoint"), "DIR/step_3");
  EXPECT_EQ(line.extra.at("best"), "true");
}

TEST(CommandLine, RefusesWithNearestNames) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--num_epoch5", "3"}, "[command line] unknown flag: --num_epoch5. Nearest: --num_epochs"},
      {{"--global_batch_size", "3"},
       "unknown flag: --global_batch_size. It is a key without a flag of its own: --set global_batch_size=VALUE."},
      {{"--zzz"}, "unknown flag: --zzz. Run with --help=all for all flags; other keys are set by --set key=value."},
      {{"--num", "3"}, "the flag is ambiguous: --num may be --num_data_workers, --num_epochs, --num_iters. Write it in full."},
      {{"--enable_a"}, "the flag is ambiguous: --enable_a may be "},
      {{"--config"}, "a value is missing: --config. Write --config PRESET."},
      {{"--config", "--noddp"}, "a value is missing: --config"},
      {{"--enable_jit=yes"}, "a switch is true or false: --enable_jit=yes. Use --enable_jit or --no-enable_jit."},
      {{"--no-num_epochs"}, "only switches have a --no- form: --no-num_epochs. Give --num_epochs a value."},
      {{"--checkpoint_dirs=fast:/a", "--checkpoint_dirs=safe:/b"},
       "a list is given twice: --checkpoint_dirs. Write all of it in one: --checkpoint_dirs a,b."},
      {{"short"}, "unexpected argument: short. Flags begin with two dashes: --config short; see --help."},
      {{"-n", "3"}, "unexpected argument: -n"},
      {{"--tutorial=sc24"}, "unknown tutorial: --tutorial sc24. Use sc21, sc22, sc23 or dl4sci25."},
      {{"--dry_run=json"}, "unknown form: --dry_run=json. Use --dry_run, --dry_run=table or --dry_run=yaml."},
      {{"--help=most"}, "unknown form: --help=most. Use --help or --help=all."},
      {{"--set", "lr"}, "no assignment: --set lr. Write --set key=value, for instance --set lr=1e-3."},
  };
  for (const auto& [arguments, message] : cases) EXPECT_THAT(parse_arguments_error(arguments), HasSubstr(message));
}

TEST(CommandLine, HelpIsCommonOrAll) {
  EXPECT_EQ(command_line({}).help, Help::Off);
  for (const char* form : {"-h", "--help", "--help=true"}) EXPECT_EQ(command_line({form}).help, Help::Common) << form;
  EXPECT_EQ(command_line({"--help=all"}).help, Help::All);
  EXPECT_EQ(command_line({"--help", "--seed", "3"}).help, Help::Common);
}

}  // namespace
}  // namespace welkin::config
