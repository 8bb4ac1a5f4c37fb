// SPDX-License-Identifier: Apache-2.0
#include "data/tools/inspect.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "data/datasets/doubled_times.h"
#include "data/datasets/era5_dataset.h"
#include "data/formats/formats.h"
#include "data/tools/inspect_fields.h"
#include "data/tools/inspect_hdf5.h"
#include "data/tools/statistics.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

// How often the file is opened meanwhile. Equal events in a row are one event, so that reads between opens are asked for, too.
int64_t opens_of(const std::filesystem::path& path, const std::function<void()>& work) {
  const int queue = inotify_init1(IN_NONBLOCK);
  EXPECT_GE(inotify_add_watch(queue, path.c_str(), IN_OPEN | IN_ACCESS), 0);
  work();
  int64_t opens = 0;
  alignas(inotify_event) std::array<char, 4096> events{};
  for (ssize_t bytes = 0; (bytes = read(queue, events.data(), events.size())) > 0;) {
    for (const char* at = events.data(); at < events.data() + bytes;) {
      inotify_event event{};
      std::memcpy(&event, at, sizeof event);
      at += sizeof event + event.len;
      opens += (event.mask & IN_OPEN) != 0 ? 1 : 0;
    }
  }
  close(queue);
  return opens;
}

TEST(Inspect, TimesThatTwoFilesHoldAreNamed) {
  const DataFolder folder;
  write_field_file(folder / "2001.h5", {.steps = 3, .time = {0, 3600, 7200}});
  write_field_file(folder / "2002.h5", {.steps = 3, .time = {3600, 7200, 10800}});
  const std::string warning =
      "two files hold the same times: files=2001.h5 and 2002.h5, times=2, first=1970-01-01T01:00:00. They count twice: remove "
      "them "
      "from one file, or give members of an ensemble the attribute member";
  EXPECT_NE(inspect_folder(folder.path(), {}).find("warning: " + warning + "\n"), std::string::npos);
  const std::vector<std::string> warnings = Era5Dataset({.folder = folder.path()}).warnings();
  EXPECT_NE(std::ranges::find(warnings, warning), warnings.end());
  const std::vector<std::string> of_statistics = compute_statistics(folder.path()).warnings();
  EXPECT_NE(std::ranges::find(of_statistics, warning), of_statistics.end());
}

TEST(Inspect, FilesThatFollowEachOtherAndMembersAreInOrder) {
  FieldFacts first, second;
  first.time = {0, 3600}, second.time = {7200, 10800};
  EXPECT_EQ(doubled_times_text({&first, &second}), "");
  second.time = {1800, 5400};  // between the others
  EXPECT_EQ(doubled_times_text({&first, &second}), "");
  second.time = first.time, second.member = 1;
  EXPECT_EQ(doubled_times_text({&first, &second}), "");
}

TEST(Inspect, OpensAFileAsOftenAsReadingItDoes) {
  const DataFolder folder;
  write_field_file(folder / "a.h5", {});
  std::string text;
  const int64_t read = opens_of(folder / "a.h5", [&] { open_hdf5_arrays(folder / "a.h5"); });
  const int64_t inspected = opens_of(folder / "a.h5", [&] { text = inspect_hdf5(folder / "a.h5", {}); });
  EXPECT_GT(read, 0);
  EXPECT_EQ(inspected, read);
  EXPECT_NE(text.find("fields  ("), std::string::npos) << text;
}

}  // namespace
}  // namespace welkin::data::tests
