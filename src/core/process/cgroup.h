// SPDX-License-Identifier: Apache-2.0
// What the control groups of this process allow it: the smallest limit over its group and those above, of version 2 and 1.
// A batch system sets its limits on the job's group, which need not be the root that a process sees.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

namespace welkin {

struct CgroupLimits {
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  uint64_t memory = kNone;       // bytes that the group may have
  uint64_t memory_left = kNone;  // of these, what is not used yet, page cache counted as used
  double cores = 0;              // processor time per time; 0: no limit
};

// `root`: where proc and sys lie; another one in tests. What cannot be read, or is no number, is no limit.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace welkin
