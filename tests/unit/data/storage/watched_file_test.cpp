// SPDX-License-Identifier: Apache-2.0
#include "data/storage/watched_file.h"

#include <gmock/gmock.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr size_t kBytes = 1 << 16;

TEST(WatchedFileTest, ReadsAndCopies) {
  const DataFolder folder;
  std::string content(kBytes, 'x');
  content += "end";
  write_file_atomically(folder / "a", content);
  const WatchedFile file(folder / "a");
  std::array<std::byte, 3> out{};
  file.read(kBytes, out);
  EXPECT_EQ(std::memcmp(out.data(), "end", 3), 0);
  file.copy(0, 1, [&](const std::byte* bytes) { std::memcpy(out.data(), bytes + kBytes - 2, 3); });
  EXPECT_EQ(std::memcmp(out.data(), "xxe", 3), 0);
}

TEST(WatchedFileTest, TruncationUnderAMappingIsAnErrorNotACrash) {
  const DataFolder folder;
  write_file_atomically(folder / "a", std::string(kBytes, 'x'));
  const WatchedFile file(folder / "a");
  std::filesystem::resize_file(folder / "a", 10);
  char last = 0;
  for (int again = 0; again < 3; ++again) {
    EXPECT_THAT([&] { file.copy(0, 1, [&](const std::byte* bytes) { std::memcpy(&last, bytes + kBytes - 1, 1); }); },
                ThrowsMessage<DataError>(HasSubstr(
                    "[file] the file was truncated or written to while it was being read: path=" + (folder / "a").string() +
                    ", bytes_before=65536, bytes_now=10, offset=0. Restore it")));
  }
  std::array<std::byte, 8> out{};
  EXPECT_THAT([&] { file.read(kBytes - 8, out); }, ThrowsMessage<DataError>(HasSubstr("truncated")));
}

TEST(WatchedFileTest, TruncationWhileManyThreadsCopyIsAnErrorOfEach) {
  const DataFolder folder;
  write_file_atomically(folder / "a", std::string(64 * kBytes, 'x'));
  const WatchedFile file(folder / "a");
  std::atomic<int> errors = 0, started = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<std::byte> out(64 * kBytes);
      try {
        while (true) {
          file.copy(0, 1, [&](const std::byte* bytes) { std::memcpy(out.data(), bytes, out.size()); });
          ++started;
        }
      } catch (const DataError&) {
        ++errors;
      }
    });
  }
  while (started < 8) std::this_thread::yield();
  std::filesystem::resize_file(folder / "a", 0);
  threads.clear();
  EXPECT_EQ(errors, 4);
}

TEST(WatchedFileTest, OverwritingAndReplacingAreErrors) {
  const DataFolder folder;
  write_file_atomically(folder / "a", "1234");
  const WatchedFile file(folder / "a");
  std::array<std::byte, 4> out{};
  file.read(0, out);
  std::filesystem::last_write_time(folder / "a", std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_THAT([&] { file.read(0, out); }, ThrowsMessage<DataError>(HasSubstr("written to while it was being read")));
  const WatchedFile again(folder / "a");
  write_file_atomically(folder / "a", "5678");
  EXPECT_THAT([&] { again.read(0, out); }, ThrowsMessage<DataError>(HasSubstr("removed or replaced")));
}

TEST(WatchedFileTest, OnlyRegularFilesAreTaken) {
  EXPECT_THAT([] { WatchedFile("/dev/null"); }, ThrowsMessage<DataError>(HasSubstr("not a regular file: path=/dev/null")));
  EXPECT_THAT([] { WatchedFile("/nowhere/a"); }, ThrowsMessage<DataError>(HasSubstr("cannot open: path=/nowhere/a")));
}

TEST(BusGuardDeathTest, AccessOutsideTheMappingStillEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const DataFolder folder;
  write_file_atomically(folder / "a", std::string(kBytes, 'x'));
  EXPECT_DEATH(
      {
        const WatchedFile file(folder / "a");
        const MappedFile other(folder / "a");
        std::filesystem::resize_file(folder / "a", 0);
        file.copy(0, 1,
                  [&](const std::byte*) { *const_cast<volatile char*>(reinterpret_cast<const char*>(other.bytes().data())); });
      },
      "");
}

}  // namespace
}  // namespace welkin::data::tests
