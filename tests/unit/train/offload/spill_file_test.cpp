// SPDX-License-Identifier: Apache-2.0
// Files of checked blocks: what is written is read again, what a disk does to it is noticed, and nothing is left in the folder.
#include "train/offload/spill_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/error.h"
#include "scratch_folder.h"

namespace welkin::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct FreePages {
  void operator()(std::byte* memory) const { std::free(memory); }
};

class Pages {
 public:
  explicit Pages(size_t bytes) : memory_(static_cast<std::byte*>(std::aligned_alloc(kBlockAlignment, bytes))), bytes_(bytes) {}
  std::span<std::byte> all() { return {memory_.get(), bytes_}; }

 private:
  std::unique_ptr<std::byte, FreePages> memory_;
  size_t bytes_;
};

template <typename Work>
std::string spill_error(const Work& work) {
  try {
    work();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no DataError";
}

// Through the system's list of this process's files: it has no other name.
std::string path_of_unnamed(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with(folder.string())) return entry.path().string();
  }
  return "";
}

TEST(SpillFile, GivesBackWhatWasWrittenAndZerosBefore) {
  const ScratchFolder root;
  SpillFile file(root / "new", "test values");
  Pages pages(3 * kBlockAlignment);
  for (const size_t pages_of_block : {1, 3, 2}) file.add(pages_of_block * kBlockAlignment);
  EXPECT_EQ(file.bytes(), 6 * kBlockAlignment);
  std::ranges::fill(pages.all(), std::byte{9});
  file.read(1, pages.all());
  EXPECT_TRUE(std::ranges::all_of(pages.all(), [](std::byte x) { return x == std::byte{0}; }));
  std::ranges::fill(pages.all(), std::byte{7});
  file.write(1, pages.all());
  std::ranges::fill(pages.all(), std::byte{0});
  file.read(1, pages.all());
  EXPECT_TRUE(std::ranges::all_of(pages.all(), [](std::byte x) { return x == std::byte{7}; }));
  EXPECT_TRUE(std::filesystem::is_empty(root / "new")) << "it has no name, so nothing stays when the process is killed";
}

TEST(SpillFile, NoticesABitThatChanged) {
  const ScratchFolder root;
  SpillFile file(root.path(), "test values");
  Pages pages(kBlockAlignment);
  std::ranges::fill(pages.all(), std::byte{7});
  for (int block = 0; block < 2; ++block) file.write(file.add(kBlockAlignment), pages.all());
  const int other = ::open(path_of_unnamed(root.path()).c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(other, 0);
  EXPECT_EQ(::pwrite(other, "\x06", 1, kBlockAlignment + 100), 1);
  ::close(other);
  file.read(0, pages.all());
  EXPECT_THAT(spill_error([&] { file.read(1, pages.all()); }),
              AllOf(HasSubstr("[offload] a block is damaged: file=test values in " + root.path().string()),
                    HasSubstr("block=1 of 2, offset=4096, bytes=4096, xxh3="), HasSubstr("continue from it with --resume")));
}

TEST(SpillFile, NoticesThatTheFileBecameShorter) {
  const ScratchFolder root;
  SpillFile file(root.path(), "test values");
  Pages pages(kBlockAlignment);
  std::ranges::fill(pages.all(), std::byte{7});
  file.write(file.add(kBlockAlignment), pages.all());
  ASSERT_EQ(::truncate(path_of_unnamed(root.path()).c_str(), 0), 0);
  EXPECT_THAT(spill_error([&] { file.read(0, pages.all()); }), HasSubstr("a block cannot be read: file=test values in "));
}

TEST(SpillFile, TakesItsRoomBeforeAnythingIsComputed) {
  const ScratchFolder root;
  SpillFile file(root.path(), "test values");
  const size_t more_than_any_disk = size_t{1} << 50;
  EXPECT_THAT(spill_error([&] { file.add(more_than_any_disk); }),
              AllOf(HasSubstr("[offload] there is no room for the test values: offload_path=" + root.path().string()),
                    HasSubstr(", needed=1.0 PiB, free="), HasSubstr("No space left on device. Free space on that disk")));
  EXPECT_EQ(file.num_blocks(), 0U);
}

TEST(SpillFile, HeedsTheLimitOnFileSizes) {
  const ScratchFolder root;
  SpillFile file(root.path(), "test values");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limited{.rlim_cur = kBlockAlignment, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  file.add(kBlockAlignment);
  const std::string error = spill_error([&] { file.add(kBlockAlignment); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(error, HasSubstr("File too large. Raise the limit on file sizes (ulimit -f)"));
}

TEST(SpillFile, SaysWhereItCannotBe) {
  EXPECT_THAT(spill_error([] { SpillFile("/proc/self/task", "test values"); }),
              AllOf(HasSubstr("[offload] cannot make a file for the test values: offload_path=/proc/self/task, reason="),
                    HasSubstr("Choose a folder on a local disk")));
  EXPECT_THAT(spill_error([] { SpillFile("/dev/null/folder", "test values"); }), HasSubstr("/dev/null"));
}

}  // namespace
}  // namespace welkin::train
