// SPDX-License-Identifier: Apache-2.0
// Reads the memory of the other members' processes (Linux cross memory attach, process_vm_readv): a long message is copied once,
// and its reader needs no turns. The kernel may refuse it to processes of one user (Yama, seccomp), and for memory of a device's
// driver; so members try first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace welkin::parallel {

// Where a member's bytes are, and in which process.
struct MemberBytes {
  int64_t process = 0;
  uint64_t address = 0;
};

// Copies `bytes` of another process into `to`. Returns 0, or errno: ESRCH where it has ended, EFAULT where it has no such bytes.
int read_memory(MemberBytes from, std::byte* to, int64_t bytes);

// Whether the first and the last of `bytes` can be read; what a tensor has is of one kind.
bool can_read_memory(MemberBytes from, int64_t bytes);

}  // namespace welkin::parallel
