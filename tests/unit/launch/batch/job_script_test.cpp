// SPDX-License-Identifier: Apache-2.0
// Scripts of Flux, LSF and PBS as text; what bash makes of them is tests/e2e/command_line/job_script_test.py.
#include "launch/batch/job_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace welkin::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

BatchJob job(std::vector<std::pair<std::string, std::string>> directives = {}) {
  return {.nodes = 2,
          .tasks_per_node = 4,
          .directives = std::move(directives),
          .command = {"/opt/welkin", "train", "--set", "a=b c"}};
}

TEST(JobScript, OfFluxAsksForWholeNodesAndRunsInThem) {
  EXPECT_THAT(
      job_script("flux", job({{"time-limit", "2h"}})),
      AllOf(HasSubstr("#flux: --nodes=2\n#flux: --exclusive\n#flux: --job-name=welkin\n"), HasSubstr("#flux: --time-limit=2h\n"),
            HasSubstr(
                "exec flux run --nodes=2 --ntasks=8 --exclusive -o cpu-affinity=off /opt/welkin train --set 'a=b c' \"$@\"\n")));
}

TEST(JobScript, OfLsfSpansNodes) {
  EXPECT_THAT(job_script("lsf", job({{"W", "2:00"}})),
              AllOf(HasSubstr("#BSUB -n 8\n#BSUB -R \"span[ptile=4]\"\n#BSUB -J welkin\n"), HasSubstr("#BSUB -W 2:00\n"),
                    HasSubstr("mpirun -n 8 env MASTER_ADDR=")));
}

TEST(JobScript, OfPbsSelectsNodesOnce) {
  EXPECT_THAT(
      job_script("pbs", job({{"l", "walltime=02:00:00"}})),
      AllOf(HasSubstr("#PBS -l select=2:mpiprocs=4\n#PBS -l place=scatter:excl\n"), HasSubstr("#PBS -l walltime=02:00:00\n")));
  EXPECT_THAT(job_script("pbs", job({{"l", "select=2:ncpus=64:mpiprocs=4"}})), Not(HasSubstr("select=2:mpiprocs")));
}

TEST(JobScript, TimeAndAccountAreWordsOfEachSystem) {
  const BatchJob asked = job({{"time", "1-02:03:04"}, {"account", "m1234"}});
  EXPECT_THAT(job_script("flux", asked), HasSubstr("#flux: --time-limit=93784s\n#flux: --bank=m1234\n"));
  EXPECT_THAT(job_script("lsf", asked), HasSubstr("#BSUB -W 26:04\n#BSUB -P m1234\n")) << "whole minutes, not fewer";
  EXPECT_THAT(job_script("pbs", asked), HasSubstr("#PBS -l walltime=26:03:04\n#PBS -A m1234\n"));
  EXPECT_THAT(job_script("pbs", job({{"time", "30"}})), HasSubstr("#PBS -l walltime=00:30:00\n"));
  EXPECT_THAT(job_script("slurm", asked), HasSubstr("#SBATCH --time=1-02:03:04\n"));
  EXPECT_THROW(job_script("lsf", job({{"time", "2h"}})), ConfigError);
}

TEST(JobScript, NamesAndFilesAreWordsOfEachSystem) {
  const BatchJob asked = job({{"job-name", "my run"}, {"output", "o.txt"}, {"requeue", ""}, {"partition", "gpu"}});
  EXPECT_THAT(job_script("pbs", asked),
              AllOf(HasSubstr("#PBS -N \"my run\"\n#PBS -o o.txt\n#PBS -r y\n#PBS -q gpu\n"), Not(HasSubstr("-N welkin"))));
  EXPECT_THAT(job_script("lsf", asked),
              AllOf(HasSubstr("#BSUB -J \"my run\"\n#BSUB -o o.txt\n#BSUB -r\n#BSUB -q gpu\n"), Not(HasSubstr("-J welkin"))));
  EXPECT_THAT(job_script("flux", job({{"job-name", "my run"}})), HasSubstr("#flux: --job-name=\"my run\"\n"));
  EXPECT_THAT(job_script("pbs", job({{"N", "own"}})), HasSubstr("#PBS -N own\n"));
  EXPECT_THROW(job_script("flux", asked), ConfigError) << "Flux queues no job again";
  EXPECT_THROW(job_script("pbs", job({{"qos", "high"}})), ConfigError);
  EXPECT_THROW(job_script("lsf", job({{"gpus-per-node", "4"}})), ConfigError);
}

TEST(JobScript, ItsSizeIsSaidOnce) {
  for (const std::string& system : batch_systems()) {
    EXPECT_THROW(job_script(system, job({{"nodes", "5"}})), ConfigError) << system;
    EXPECT_THROW(job_script(system, job({{"ntasks-per-node", "5"}})), ConfigError) << system;
  }
}

TEST(JobScript, TellsNoCommandLineTheSecret) {
  for (const char* system : {"lsf", "pbs"}) {
    const std::string text = job_script(system, job());
    const std::string command = text.substr(text.find("mpirun"));
    EXPECT_THAT(command, AllOf(HasSubstr("WELKIN_JOB_SECRET_FILE="), Not(HasSubstr("WELKIN_JOB_SECRET=")))) << system;
  }
}

TEST(JobScript, OfSlurmIsBatchScript) { EXPECT_EQ(job_script("slurm", job()), batch_script(job())); }

TEST(JobScript, NamesTheSystemsThatItKnows) {
  try {
    job_script("condor", job());
    ADD_FAILURE() << "condor is not known";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown batch system: script=condor. Choose one of: slurm, flux, lsf, pbs"));
  }
  EXPECT_THROW(job_script("pbs", job({{"image", "a"}})), ConfigError);
}

}  // namespace
}  // namespace welkin::launch
