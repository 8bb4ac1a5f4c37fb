// SPDX-License-Identifier: Apache-2.0
#include "core/process/host.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/process/cgroup.h"

namespace welkin {
namespace {

int affinity_cores() {
  // The kernel refuses a mask that is smaller than its own: grow until it fits (cpu_set_t stops at 1024 cores).
  for (int cores = CPU_SETSIZE; cores <= (1 << 20); cores *= 2) {
    std::vector<cpu_set_t> masks(CPU_ALLOC_SIZE(cores) / sizeof(cpu_set_t));
    const size_t num_bytes = masks.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, num_bytes, masks.data()) == 0) return CPU_COUNT_S(num_bytes, masks.data());
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

// The cgroup's quota of cores, rounded up.
int quota_cores() {
  constexpr double kMost = 1e6;
  const double cores = cgroup_limits().cores;
  return cores > 0 ? static_cast<int>(std::min(std::ceil(cores), kMost)) : INT_MAX;
}

// Parses the line "VmPeak:   123 kB" of /proc/self/status.
uint64_t peak_address_bytes() {
  std::ifstream file("/proc/self/status");
  std::string word;
  uint64_t kilobytes = 0;
  while (file >> word && word != "VmPeak:") {
  }
  file >> kilobytes;
  return kilobytes * 1024;
}

// Parses the line "MemAvailable:   123 kB" of /proc/meminfo.
uint64_t available_on_machine() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  uint64_t kilobytes = 0;
  while (file >> word && word != "MemAvailable:") {
  }
  file >> kilobytes;
  return kilobytes * 1024;
}

uint64_t page_bytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

int usable_cores() { return std::max(1, std::min(affinity_cores(), quota_cores())); }

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

uint64_t resident_bytes() {
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * page_bytes();
}

uint64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

ProcessMemory process_memory() {
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY) {
    return {.peak = peak_address_bytes(), .limit = addresses.rlim_cur};
  }
  return {.peak = peak_resident_bytes(), .limit = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes()};
}

uint64_t available_memory() {
  const uint64_t machine = available_on_machine(), group = cgroup_limits().memory_left;
  if (group == CgroupLimits::kNone) return machine;
  return machine == 0 ? group : std::min(machine, group);
}

uint64_t page_faults() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<uint64_t>(use.ru_minflt);
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  constexpr std::array<const char*, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::ostringstream out;
  out << std::fixed << std::setprecision(value < 99.95 ? 1 : 0) << value << ' ' << kUnits[unit];
  return out.str();
}

}  // namespace welkin
