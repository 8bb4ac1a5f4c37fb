// SPDX-License-Identifier: Apache-2.0
#include "data/tools/inspect.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>

#include "data/formats/formats.h"
#include "data/tools/inspect_hdf5.h"
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
