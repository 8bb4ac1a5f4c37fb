// SPDX-License-Identifier: Apache-2.0
// The speed of a file system at a folder: bytes written and read, and small files made and removed in a second.
#pragma once

#include <cstdint>
#include <filesystem>

#include "launch/doctor/finding.h"

namespace welkin::launch {

// Writes, syncs, reads and removes a file of `bytes` and many small ones in a folder of its own below `folder`. A failed write
// is a finding, not an error.
Findings path_findings(const std::filesystem::path& folder, uint64_t bytes = uint64_t{256} << 20);

}  // namespace welkin::launch
