// SPDX-License-Identifier: Apache-2.0
// The command line of `welkin launch`, and real processes: /bin/sh in the place of welkin.
#include "launch/launch_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

std::string error_of(const Lines& words) {
  try {
    parse_launch(words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(LaunchCommand, HelpListsEveryOptionThatIsRead) {
  for (const LaunchOption& option : launch_options()) {
    EXPECT_THAT(launch_help(), HasSubstr(cat(option.name, option.metavar.empty() ? "" : " ", option.metavar)));
    EXPECT_THAT(error_of({std::string(option.name)}), testing::Not(HasSubstr("unknown option"))) << option.name;
  }
  EXPECT_THAT(launch_help(), HasSubstr("\n  -n, --nproc N "));
  EXPECT_TRUE(parse_launch({"--help=all"}).help);
}

TEST(LaunchCommand, ReadsItsOptionsAndLeavesTheVerbAlone) {
  const LaunchArguments arguments = parse_launch(
      {"-n", "4", "--nnodes=2", "--node_rank", "1", "--rdzv", "n1:29500", "--bind=off", "--", "train", "--config", "short"});
  EXPECT_EQ(arguments.num_local, 4);
  EXPECT_EQ(arguments.num_nodes, 2);
  EXPECT_EQ(arguments.node_rank, 1);
  EXPECT_EQ(arguments.rendezvous, "n1:29500");
  EXPECT_EQ(arguments.bind, "off");
  EXPECT_THAT(arguments.verb, ElementsAre("train", "--config", "short"));
}

TEST(LaunchCommand, TellsItsProcessesWhatWasTyped) {
  const auto typed = [](const Lines& words) { return typed_command(parse_launch(words), {"--plugin", "my lib.so"}); };
  EXPECT_EQ(typed({"-n", "2", "--", "train", "--data_root", "it's here"}),
            "welkin --plugin 'my lib.so' launch -n 2 -- train --data_root 'it'\\''s here'");
  EXPECT_EQ(typed({"-n", "2", "train"}), "welkin --plugin 'my lib.so' launch -n 2 train");
  EXPECT_EQ(typed({"-n", "2", "--nnodes", "2", "--rdzv", "a:1", "train"}), "") << "one of two commands";
}

TEST(LaunchCommand, SaysWhatIsWrong) {
  EXPECT_THAT(error_of({"--", "train"}), HasSubstr("the number of processes is not given"));
  EXPECT_THAT(error_of({"-n", "two", "--", "train"}), HasSubstr("-n=two"));
  EXPECT_THAT(error_of({"-n", "0", "--", "train"}), HasSubstr("-n=0, least=1"));
  EXPECT_THAT(error_of({"-n"}), HasSubstr("an option needs a value: option=-n"));
  EXPECT_THAT(error_of({"-n", "2"}), HasSubstr("no verb after --"));
  EXPECT_THAT(error_of({"-n", "2", "--nnode", "2", "--", "train"}), AllOf(HasSubstr("option=--nnode"), HasSubstr("--nnodes")));
  EXPECT_THAT(error_of({"-n", "2", "--nnodes", "2", "--", "train"}), HasSubstr("nnodes=2, rdzv is not given"));
  EXPECT_THAT(error_of({"-n", "2", "--node_rank", "1", "--", "train"}), HasSubstr("node_rank=1, nnodes=1"));
}

TEST(LaunchCommand, RestartsWithoutElasticNeedAllRanks) {
  const auto parsed = [](const Lines& more) {
    Lines words = {"-n", "2"};
    words.insert(words.end(), more.begin(), more.end());
    words.emplace_back("train");
    return parse_launch(words);
  };
  const LaunchArguments alone = parsed({"--nnodes", "3", "--rdzv", "a:1", "--max_restarts", "1"});
  ASSERT_TRUE(alone.elastic.has_value());
  EXPECT_EQ(alone.elastic->least, 6);
  EXPECT_EQ(alone.elastic->most, 6);
  EXPECT_EQ(parsed({"--elastic", "1:2", "--max_restarts", "1"}).elastic->least, 1);
  EXPECT_FALSE(parsed({"--max_restarts", "0"}).elastic.has_value());
  EXPECT_FALSE(parsed({}).elastic.has_value());
  EXPECT_THAT(error_of({"-n", "2", "--max_restarts", "1", "evaluate"}),
              HasSubstr("only train goes on after a restart: verb=evaluate. Leave --max_restarts out"));
  EXPECT_THAT(error_of({"-n", "2", "--max_restarts", "1", "--sbatch", "train"}),
              HasSubstr("elastic rounds: --max_restarts, --sbatch"));
}

struct ShellRun {
  int code = 0;
  std::string out, err;
};

ShellRun run_shell(const std::string& script, int64_t processes, int grace_ms = 300) {
  WorkerPlan plan;
  plan.command = {"/bin/sh", "-c", script};
  plan.num_local = processes;
  plan.grace = std::chrono::milliseconds(grace_ms);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  ShellRun run;
  run.code = run_workers(plan);
  run.out = testing::internal::GetCapturedStdout();
  run.err = testing::internal::GetCapturedStderr();
  return run;
}

TEST(Workers, KnowTheirPlaceAndHaveTheirLinesMarked) {
  const ShellRun run = run_shell("echo rank $RANK of $WORLD_SIZE; echo and $LOCAL_RANK >&2; printf end", 3);
  EXPECT_EQ(run.code, 0);
  for (const char* line : {"[0] rank 0 of 3\n", "[2] rank 2 of 3\n", "[1] end\n"}) EXPECT_THAT(run.out, HasSubstr(line));
  EXPECT_THAT(run.err, HasSubstr("[1] and 1\n"));
}

TEST(Workers, OneThatFailsEndsAllAndIsNamed) {
  const auto begin = std::chrono::steady_clock::now();
  const ShellRun run = run_shell("if [ $RANK = 2 ]; then exit 7; fi; sleep 30", 4);
  EXPECT_EQ(run.code, 7);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("[launch] rank 2 (process "), HasSubstr("ended with exit code 7; all ranks have been stopped")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(Workers, OneThatIsKilledIsNamedWithItsSignal) {
  const ShellRun run = run_shell("if [ $RANK = 1 ]; then kill -9 $$; fi; sleep 30", 2);
  EXPECT_EQ(run.code, 128 + SIGKILL);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("rank 1 (process "), HasSubstr("was ended by signal 9 (Killed)"),
                    ContainsRegex("It held [0-9.]+ [KM]iB of memory at most: unless somebody ended it, the kernel did")));
}

TEST(Workers, OneThatIgnoresSigtermIsKilled) {
  const ShellRun run = run_shell("if [ $RANK = 0 ]; then exit 3; fi; trap '' TERM; while :; do sleep 1; done", 2);
  EXPECT_EQ(run.code, 3);
}

// A rank whose partner went away ends with code 4 and may be noticed first.
TEST(Workers, TheReasonIsTheOneThatDidNotFailForAnother) {
  const ShellRun run = run_shell("if [ $RANK = 0 ]; then exit 4; fi; sleep 0.2; exit 3", 2, 2000);
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, HasSubstr("rank 1"));
}

TEST(Workers, SignalsArePassedOn) {
  const ShellRun run =
      run_shell("trap 'echo caught; exit 0' TERM; if [ $RANK = 0 ]; then sleep 0.5; kill -TERM $PPID; fi; sleep 20 & wait", 2);
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("[0] caught"), HasSubstr("[1] caught")));
}

TEST(Workers, OneThatIsStoppedHearsOfItToo) {
  const ShellRun run = run_shell(
      "trap 'echo caught; exit 0' TERM; if [ $RANK = 0 ]; then sleep 0.5; kill -TERM $PPID; else kill -STOP $$; fi; sleep 20 & "
      "wait",
      2);
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, HasSubstr("[1] caught"));
}

// Other threads, such as libtorch leaves behind, may be told of the end of a process in our place, and drop it.
TEST(Workers, TheirEndIsSeenBesideOtherThreads) {
  std::vector<std::jthread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run_shell("exec >&- 2>&-; sleep 0.02", 2).code, 0);
}

TEST(Workers, AProgramThatIsNotThereIsAnError) {
  WorkerPlan plan;
  plan.command = {"/no/such/program"};
  try {
    run_workers(plan);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("program=/no/such/program, reason=No such file or directory"));
  }
}

}  // namespace
}  // namespace welkin::launch
