// SPDX-License-Identifier: Apache-2.0
// Processor, cores, memory and limits of this machine and process, from /proc and /sys.
#pragma once

#include <filesystem>

#include "launch/doctor/finding.h"

namespace welkin::launch {

// `root` stands in front of /proc and /sys: tests have folders of their own.
Findings processor_findings(const std::filesystem::path& root = "/");
Findings core_findings(const std::filesystem::path& root = "/");
Findings memory_findings(const std::filesystem::path& root = "/");

// Locked memory, open files and the size of the address space that this process may have.
Findings limit_findings();

}  // namespace welkin::launch
