// SPDX-License-Identifier: Apache-2.0
// What each batch system says, from a table of variables and commands.
#include "launch/batch/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"

namespace welkin::launch {
namespace {

using ::testing::HasSubstr;

using Table = std::map<std::string, std::string>;

ReadVariable variables(const Table& table) {
  return [table](const char* name) {
    const auto found = table.find(name);
    return found == table.end() ? nullptr : found->second.c_str();
  };
}

RunCommand commands(const Table& table) {
  return [table](const std::string& command) -> std::optional<std::string> {
    const auto found = table.find(command);
    if (found == table.end()) return {};
    return found->second;
  };
}

double seconds_left(const Table& environment, const Table& outputs, const std::string& source) {
  const auto left = time_left(variables(environment), commands(outputs), 1000);
  if (!left) return -1;
  EXPECT_EQ(left->source, source);
  return left->seconds;
}

TEST(TimeLeft, OfSlurm) {
  const Table job{{"SLURM_JOB_ID", "12"}};
  EXPECT_EQ(seconds_left({{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_END_TIME", "1600"}}, {}, "Slurm"), 600);
  const std::string squeue = "squeue --noheader --format=%L --job=12";
  EXPECT_EQ(seconds_left(job, {{squeue, "1-01:00:00\n"}}, "Slurm"), 90000);
  EXPECT_EQ(seconds_left(job, {{squeue, "4:30\n"}}, "Slurm"), 270);
  for (const char* text : {"UNLIMITED\n", "NOT_SET\n", "INVALID\n", ""}) {
    EXPECT_EQ(seconds_left(job, {{squeue, text}}, ""), -1) << text;
  }
  EXPECT_EQ(seconds_left(job, {}, ""), -1);  // the command fails
}

TEST(TimeLeft, AnEndBeyondAllTimesIsNone) {
  for (const char* end : {"-9223372036854775808", "9223372036854775807", "-99999999999999999999"}) {
    EXPECT_EQ(seconds_left({{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_END_TIME", end}}, {}, ""), -1) << end;
  }
}

TEST(TimeLeft, OfFlux) {
  const Table job{{"FLUX_JOB_ID", "f3"}, {"SLURM_JOB_ID", "12"}};  // Flux within a job of Slurm
  EXPECT_EQ(seconds_left(job, {{"flux job timeleft f3", "600\n"}}, "Flux"), 600);
  EXPECT_EQ(seconds_left(job, {{"flux job timeleft f3", "infinity\n"}}, ""), -1);
}

TEST(TimeLeft, OfLsf) {
  const Table job{{"LSB_JOBID", "7"}};
  const std::string bjobs = "bjobs -noheader -o time_left 7";
  EXPECT_EQ(seconds_left(job, {{bjobs, "1:30 L\n"}}, "LSF"), 5400);
  EXPECT_EQ(seconds_left(job, {{bjobs, "-\n"}}, ""), -1);
}

// Its number alone would be that of all elements: other times, and brequeue would end and queue them all.
TEST(TimeLeft, OfAnElementOfAnLsfArray) {
  const Table element{{"LSB_JOBID", "7"}, {"LSB_JOBINDEX", "3"}};
  EXPECT_EQ(seconds_left(element, {{"bjobs -noheader -o time_left '7[3]'", "1:30 L\n"}}, "LSF"), 5400);
  EXPECT_EQ(requeue_command(variables(element)), "brequeue '7[3]'");
  EXPECT_EQ(requeue_command(variables({{"LSB_JOBID", "7"}, {"LSB_JOBINDEX", "0"}})), "brequeue 7");
}

TEST(TimeLeft, OfPbs) {
  const Table job{{"PBS_JOBID", "9.head"}};
  const std::string text =
      "Job Id: 9.head\n    Job_Name = train\n    resources_used.walltime = 00:10:00\n    Resource_List.select = 1\n"
      "    Resource_List.walltime = 01:00:00\n";
  EXPECT_EQ(seconds_left(job, {{"qstat -f 9.head", text}}, "PBS"), 3000);
  EXPECT_EQ(seconds_left(job, {{"qstat -f 9.head", "    Resource_List.walltime = 01:00:00\n"}}, "PBS"), 3600);
  EXPECT_EQ(seconds_left(job, {{"qstat -f 9.head", "    resources_used.walltime = 00:10:00\n"}}, ""), -1);
}

TEST(TimeLeft, OutsideOfAJobThereIsNone) { EXPECT_EQ(seconds_left({}, {}, ""), -1); }

TEST(Requeue, NamesTheCommandOfTheSystem) {
  EXPECT_EQ(requeue_command(variables({{"SLURM_JOB_ID", "12"}})), "scontrol requeue 12");
  EXPECT_EQ(requeue_command(variables({{"LSB_JOBID", "7"}})), "brequeue 7");
  EXPECT_EQ(requeue_command(variables({{"PBS_JOBID", "9.head"}})), "qrerun 9.head");
  EXPECT_EQ(requeue_command(variables({{"PBS_JOBID", "9[]; rm"}})), "qrerun '9[]; rm'");
}

TEST(Requeue, RefusesWhereThereIsNone) {
  EXPECT_THAT([] { requeue_command(variables({})); },
              ::testing::ThrowsMessage<ConfigError>(HasSubstr("this is no job of a batch system: requeue=true")));
  EXPECT_THAT(
      [] {
        requeue_command(variables({{"FLUX_JOB_ID", "f3"}}));
      },
      ::testing::ThrowsMessage<ConfigError>(HasSubstr("this batch system has no command that queues a job again: system=Flux")));
}

TEST(OutputOf, IsWhatACommandPrints) {
  EXPECT_EQ(output_of("printf 'a\\nb'"), "a\nb");
  EXPECT_FALSE(output_of("false"));
  EXPECT_FALSE(output_of("no_such_command_of_any_kind 2>/dev/null"));
  EXPECT_FALSE(output_of("yes"));  // without an end
}

}  // namespace
}  // namespace welkin::launch
