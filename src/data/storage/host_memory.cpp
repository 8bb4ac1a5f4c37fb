// SPDX-License-Identifier: Apache-2.0
#include "data/storage/host_memory.h"

#include <fstream>
#include <limits>

#include "core/error.h"
#include "core/process/cgroup.h"
#include "core/process/host.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// MemAvailable of proc(5): the memory that can be used without swapping.
uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return std::stoull(line.substr(line.find_first_of("0123456789"))) * 1024;
  }
  return kNoLimit;
}

// The limit less the memory of this process. Page cache counts as used in a group, but the kernel reclaims it.
uint64_t cgroup_memory() {
  const uint64_t limit = cgroup_limits().memory, used = resident_bytes();
  if (limit == CgroupLimits::kNone) return kNoLimit;
  return limit > used ? limit - used : 0;
}

}  // namespace

void check_fits_memory(uint64_t bytes, const std::string& what) {
  const uint64_t free = std::min(available_memory(), cgroup_memory());
  if (bytes <= free / 10 * 9) return;
  throw DataError("data",
                  cat("it does not fit in memory: data=", what, ", needed=", format_bytes(bytes), ", free=", format_bytes(free)),
                  "Read it from the file (resident none, data_loader_config lowmem), or take less data");
}

}  // namespace welkin::data
