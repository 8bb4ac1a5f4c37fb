// SPDX-License-Identifier: Apache-2.0
// The command of this run as its user typed it, for the line that tells how to continue.
#pragma once

#include <string>

#include "apps/cli/application.h"
#include "launch/ranks.h"

namespace welkin::apps {

// Empty where it is not known: words before srun, mpirun and the like do not reach a rank.
std::string typed_command(const Application& application, int argc, char** argv, const launch::RankInfo& place);

// The command with --resume, unless it is there already. Empty stays empty.
std::string resume_command(std::string command, bool resumes);

}  // namespace welkin::apps
