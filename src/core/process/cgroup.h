// SPDX-License-Identifier: Apache-2.0
// The limits of this process's control groups: the smallest limit over its group and those above, of version 2 and 1. A batch
// system sets its limits on the job's group, which need not be the root that a process sees.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

namespace welkin {

struct CgroupLimits {
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  uint64_t memory = kNone;       // bytes that the group may have
  uint64_t memory_left = kNone;  // unused bytes of these, page cache counted as used
  double cores = 0;              // processor time per time; 0: no limit
};

// `root`: the folder of proc and sys; another one in tests. A value that cannot be read, or is no number, is no limit.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace welkin
