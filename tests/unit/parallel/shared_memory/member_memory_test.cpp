// SPDX-License-Identifier: Apache-2.0
// Memory of another process, and of none.
#include "parallel/shared_memory/member_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace welkin::parallel {
namespace {

TEST(MemberMemory, IsReadOrTheReasonIsTold) {
  std::vector<std::byte> there(3'000'000, std::byte{7}), here(there.size());
  const auto at = [](const void* memory) {
    return MemberBytes{.process = ::getpid(), .address = reinterpret_cast<uint64_t>(memory)};
  };
  EXPECT_EQ(read_memory(at(there.data()), here.data(), static_cast<int64_t>(here.size())), 0);
  EXPECT_EQ(here, there);
  EXPECT_TRUE(can_read_memory(at(there.data()), static_cast<int64_t>(there.size())));
  EXPECT_FALSE(can_read_memory({.process = ::getpid(), .address = 16}, 8));
  EXPECT_EQ(read_memory({.process = ::getpid(), .address = 16}, here.data(), 8), EFAULT);
  EXPECT_EQ(read_memory({.process = 1 << 30, .address = 16}, here.data(), 8), ESRCH);
}

// The kernel reads up to the page that is absent, and says how far it came.
TEST(MemberMemory, ThatEndsEarlyIsAnError) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::munmap(static_cast<std::byte*>(memory) + page, page), 0);
  std::vector<std::byte> here(2 * page);
  const MemberBytes there{.process = ::getpid(), .address = reinterpret_cast<uint64_t>(memory)};
  EXPECT_EQ(read_memory(there, here.data(), static_cast<int64_t>(page)), 0);
  EXPECT_EQ(read_memory(there, here.data(), static_cast<int64_t>(2 * page)), EFAULT);
  EXPECT_FALSE(can_read_memory(there, static_cast<int64_t>(2 * page)));
  ::munmap(memory, page);
}

}  // namespace
}  // namespace welkin::parallel
