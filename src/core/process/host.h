// SPDX-License-Identifier: Apache-2.0
// Facts about the machine and this process, for logs and defaults.
#pragma once

#include <cstdint>
#include <string>

namespace welkin {

// Cores that this process may use: its affinity mask, further limited by a cgroup's CPU quota (rounded up). At least 1.
int usable_cores();

std::string host_name();
// Identifier of the running kernel: equal for all containers of a machine, and for no other machine. Empty where there is none.
std::string boot_id();

// Resident memory of this process, now and at its highest.
uint64_t resident_bytes();
uint64_t peak_resident_bytes();

// Bytes that processes can still take before the machine, or the cgroup of this one, has no more; 0 where neither says.
uint64_t available_memory();

// Pages of memory that the kernel has given to this process so far, each cleared before: 4 KiB, or 2 MiB where they are huge.
// Threads that use memory again take none.
uint64_t page_faults();

// Most bytes that this process had, and bytes that it may have: addresses where they are limited (ulimit -v), else resident
// memory and the machine's.
struct ProcessMemory {
  uint64_t peak = 0;
  uint64_t limit = 0;
};
ProcessMemory process_memory();

// "12.3 GiB", "640 KiB", "17 B".
std::string format_bytes(uint64_t bytes);

}  // namespace welkin
