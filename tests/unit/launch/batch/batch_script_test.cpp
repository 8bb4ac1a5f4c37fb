// SPDX-License-Identifier: Apache-2.0
#include "launch/batch/batch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "launch/batch/shell_word.h"

namespace welkin::launch {
namespace {

using testing::HasSubstr;

TEST(BatchScript, HasResourcesRendezvousAndQuotedArguments) {
  EXPECT_EQ(batch_script({.nodes = 2,
                          .tasks_per_node = 4,
                          .directives = {{"account", "m1"}, {"exclusive", ""}},
                          .command = {"/opt/welkin", "train", "--set", "channel_names=['a', 'b']"}}),
            "#!/bin/bash\n"
            "#SBATCH --nodes=2\n"
            "#SBATCH --ntasks-per-node=4\n"
            "#SBATCH --job-name=welkin\n"
            "#SBATCH --output=%x-%j.out\n"
            "#SBATCH --signal=USR1@120\n"
            "#SBATCH --account=m1\n"
            "#SBATCH --exclusive\n"
            "set -euo pipefail\n"
            "export MASTER_ADDR=${MASTER_ADDR:-$(hostname)}\n"
            "export MASTER_PORT=${MASTER_PORT:-$((29500 + SLURM_JOB_ID % 8000))}\n"
            "export WELKIN_JOB_SECRET=${WELKIN_JOB_SECRET:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \\n')}\n"
            "export HDF5_USE_FILE_LOCKING=${HDF5_USE_FILE_LOCKING:-FALSE}\n"
            "export WELKIN_BIND=auto\n"
            "exec srun --kill-on-bad-exit=1 --cpu-bind=none /opt/welkin train --set "
            "'channel_names=['\\''a'\\'', '\\''b'\\'']' \"$@\"\n");
}

TEST(BatchScript, AnImageRunsInsideShifter) {
  EXPECT_THAT(batch_script({.directives = {{"image", "welkin:1"}}, .command = {"welkin", "train"}}),
              HasSubstr("--cpu-bind=none shifter welkin train \"$@\"\n"));
}

TEST(BatchScript, ValuesOfDirectivesAreQuotedWhereTheyNeedIt) {
  EXPECT_EQ(directive_value("a=b,c:1"), "a=b,c:1");
  EXPECT_EQ(directive_value("my run"), "\"my run\"");
  EXPECT_EQ(directive_value("5\" pipe"), "'5\" pipe'");
  EXPECT_EQ(directive_value("it's"), "\"it's\"");
  EXPECT_EQ(directive_value("\"span[ptile=2]\""), "\"span[ptile=2]\"");
  EXPECT_EQ(directive_value("a#b"), "\"a#b\"");
  EXPECT_THROW(directive_value("\"it's\" it"), ConfigError);
  EXPECT_THAT(batch_script({.directives = {{"comment", "of me"}}, .command = {"welkin"}}),
              HasSubstr("#SBATCH --comment=\"of me\"\n"));
}

TEST(BatchScript, DirectivesCannotAddLines) {
  EXPECT_EQ(parse_directive("time=01:00:00").second, "01:00:00");
  EXPECT_THROW(parse_directive("a=b\nrm -rf x"), ConfigError);
  EXPECT_THROW(parse_directive("--account=m1"), ConfigError);
  EXPECT_THROW(parse_directive(""), ConfigError);
}

}  // namespace
}  // namespace welkin::launch
