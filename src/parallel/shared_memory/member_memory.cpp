// SPDX-License-Identifier: Apache-2.0
#include "parallel/shared_memory/member_memory.h"

#include <sys/uio.h>

#include <cerrno>

namespace welkin::parallel {

// The kernel reads at most 2 GiB a call, and less where a page is absent.
int read_memory(MemberBytes from, std::byte* to, int64_t bytes) {
  while (bytes > 0) {
    const iovec here{.iov_base = to, .iov_len = static_cast<size_t>(bytes)};
    const iovec there{.iov_base = reinterpret_cast<void*>(from.address), .iov_len = here.iov_len};  // NOLINT: of another process
    const ssize_t read = ::process_vm_readv(static_cast<pid_t>(from.process), &here, 1, &there, 1, 0);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return errno;
    if (read == 0) return EFAULT;
    to += read;
    from.address += static_cast<uint64_t>(read);
    bytes -= read;
  }
  return 0;
}

bool can_read_memory(MemberBytes from, int64_t bytes) {
  std::byte found{};
  const MemberBytes last{.process = from.process, .address = from.address + static_cast<uint64_t>(bytes - 1)};
  return read_memory(from, &found, 1) == 0 && read_memory(last, &found, 1) == 0;
}

}  // namespace welkin::parallel
