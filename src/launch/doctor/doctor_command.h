// SPDX-License-Identifier: Apache-2.0
// `welkin doctor`: the resources of this machine and job, and their faults. It runs before torch is loaded, so that it can tell
// why torch does not load.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "launch/launch_command.h"
#include "launch/torch_location.h"

namespace welkin::launch {

struct DoctorArguments {
  std::vector<std::filesystem::path> paths;  // folders whose file systems are measured
  int64_t num_local = 0;                     // -n: start that many ranks on this node; 0: those of the job, if it has several
  std::string json;                          // a file for the page as JSON; "-": instead of the text; empty: none
  double megabytes = 256;                    // of the file that measures a path
  bool help = false;
};

// `words` are the arguments after `doctor`. ConfigError naming the option.
DoctorArguments parse_doctor(const std::vector<std::string>& words);
std::string doctor_help();
std::span<const LaunchOption> doctor_options();

// Prints the page (rank 0 alone, where there are several). `options` are those before the verb. Returns 1 where something is
// red, else 0. CommError on a rank that does not reach rank 0.
int run_doctor(const DoctorArguments& arguments, const TorchSearch& search, const std::filesystem::path& program,
               const std::vector<std::string>& options, const MakeBoard& make_board);

}  // namespace welkin::launch
