// SPDX-License-Identifier: Apache-2.0
// The helpers are shell scripts that speak the child's protocol.
#include "data/check/file_checks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "core/error.h"
#include "core/file.h"
#include "data/formats/check_arrays.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/formats/hdf5/hdf5_walk.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

// For every file: begun, what `body` does with $f, finished.
CheckHelper shell_helper(const std::string& body, std::chrono::milliseconds patience = std::chrono::milliseconds(10'000)) {
  return {
      .program = "/bin/sh", .arguments = {"-c", "for f; do printf +; " + body + "; printf =; done", "sh"}, .patience = patience};
}

std::vector<std::string> deaths_of(const CheckHelper& helper, const std::vector<std::string>& files) {
  return check_in_children(helper, files);
}

TEST(CheckChildTest, NamesTheFileThatEndsTheChildAndGoesOnBehindIt) {
  EXPECT_THAT(deaths_of(shell_helper("case $f in *bad*) kill -SEGV $$;; *abort*) kill -ABRT $$;; esac"),
                        {"a", "bad", "b", "abort", "bad2", "c"}),
              ElementsAre("", "ended with signal 11 (Segmentation fault)", "", "ended with signal 6 (Aborted)",
                          "ended with signal 11 (Segmentation fault)", ""));
  EXPECT_THAT(deaths_of(shell_helper("case $f in odd) exit 7;; esac"), {"odd", "a"}), ElementsAre("ended with exit code 7", ""));
}

TEST(CheckChildTest, SilenceIsLimitedAndProgressIsNot) {
  const auto patience = std::chrono::milliseconds(2000);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(deaths_of(shell_helper("case $f in slow) sleep 60;; esac", patience), {"a", "slow", "b"}),
              ElementsAre("", "made no progress in 2 s", ""));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_THAT(deaths_of(shell_helper("for i in $(seq 25); do sleep 0.1; printf .; done", patience), {"a"}), ElementsAre(""));
}

TEST(CheckChildTest, ChildrenEndedByOthersAndProgramsThatCannotBeRunSayNothing) {
  EXPECT_THAT(deaths_of(shell_helper("kill -KILL $$"), {"a", "b"}), ElementsAre("", ""));
  EXPECT_THAT(deaths_of({.program = "/no/such/program"}, {"a", "b"}), ElementsAre("", ""));
  EXPECT_THAT(deaths_of({.program = "/bin/false"}, {"a"}), ElementsAre(""));
}

TEST(CheckChildTest, AFileIsNotBlamedForWhatAnEarlierOneDidToTheChild) {
  EXPECT_THAT(deaths_of(shell_helper("[ -z \"$earlier\" ] || kill -SEGV $$; earlier=$f"), {"a", "b", "c"}),
              ElementsAre("", "", ""));
}

TEST(CheckChildTest, ManyFilesAreDividedBetweenChildren) {
  std::vector<std::string> files(1000, "/" + std::string(200, 'x'));  // more than one command line takes
  for (const size_t i : {0, 500, 999}) files[i] = "bad";
  const auto deaths = deaths_of(shell_helper("case $f in bad) kill -SEGV $$;; esac"), files);
  for (size_t i = 0; i < deaths.size(); ++i) EXPECT_EQ(deaths[i].empty(), files[i] != "bad") << i;
}

class FileChecksTest : public ::testing::Test {
 protected:
  FileChecksTest() {
    std::ofstream(folder_ / "a") << "one";
    std::ofstream(folder_ / "b") << "two";
  }
  std::vector<std::string> looked_at() const {
    std::ifstream log(folder_ / "log");
    std::vector<std::string> names;
    for (std::string line; std::getline(log, line);) names.push_back(std::filesystem::path(line).filename());
    std::ranges::sort(names);
    return names;
  }
  CheckHelper logging() const { return shell_helper("echo $f >> " + (folder_ / "log").string()); }

  DataFolder folder_;
  FileChecks checks_;
};

TEST_F(FileChecksTest, LooksOnceAtEachFileAsItIs) {
  checks_.use(logging());
  const std::vector<std::filesystem::path> files{folder_ / "a", folder_ / "b", folder_ / "absent"};
  checks_.check(files);
  checks_.check(files);
  EXPECT_EQ(checks_.death(folder_ / "a"), "");
  EXPECT_THAT(looked_at(), ElementsAre("a", "b"));
  std::ofstream(folder_ / "a") << "longer";
  EXPECT_EQ(checks_.death(folder_ / "a"), "");
  EXPECT_THAT(looked_at(), ElementsAre("a", "a", "b"));
}

TEST_F(FileChecksTest, TrustsWhatThisProcessWrote) {
  checks_.use(logging());
  checks_.trust(folder_ / "a");
  std::filesystem::rename(folder_ / "a", folder_ / "c");  // as finished files are
  EXPECT_EQ(checks_.death(folder_ / "c"), "");
  EXPECT_THAT(looked_at(), IsEmpty());
}

TEST_F(FileChecksTest, WithoutAHelperEveryFileIsSound) {
  EXPECT_EQ(checks_.death(folder_ / "a"), "");
  checks_.use({.program = folder_ / "no-such-program"});
  EXPECT_EQ(checks_.death(folder_ / "a"), "");
}

// Of files that others wrote.
TEST_F(FileChecksTest, TellsOnceThatTheProgramIsNotThere) {
  int told = 0;
  checks_.use({.program = folder_ / "no-such-program", .on_absent = [&] { ++told; }});
  checks_.trust(folder_ / "b");
  const std::vector<std::filesystem::path> own{folder_ / "b", folder_ / "absent"};
  checks_.check(own);
  EXPECT_EQ(told, 0);
  for (const char* name : {"a", "a", "b"}) EXPECT_EQ(checks_.death(folder_ / name), "");
  EXPECT_EQ(told, 1);
  checks_.use(logging());
  EXPECT_EQ(checks_.death(folder_ / "a"), "");
  EXPECT_EQ(told, 1);
}

// HDF5's checks are those of the process.
class Hdf5ChecksTest : public ::testing::Test {
 protected:
  ~Hdf5ChecksTest() override { check_hdf5_in_children({}); }
  DataFolder folder_;
};

TEST_F(Hdf5ChecksTest, AFileThatEndsTheChildIsADataError) {
  write_field_file(folder_ / "bad.h5", {});
  write_field_file(folder_ / "good.h5", {});
  check_hdf5_in_children(shell_helper("case $f in *bad.h5) kill -SEGV $$;; esac"));
  EXPECT_THAT(
      [&] { Hdf5File::open(folder_ / "bad.h5"); },
      ThrowsMessage<DataError>(HasSubstr("[hdf5] a damaged file: path=" + (folder_ / "bad.h5").string() +
                                         ", reason=a process that read it ended with signal 11 (Segmentation fault). Copy or "
                                         "make it again, or look at the disk that it is on.")));
  EXPECT_THAT(Hdf5File::open(folder_ / "good.h5").dataset_names(), SizeIs(testing::Ge(1u)));
}

TEST_F(Hdf5ChecksTest, FilesOfThisProcessAreNotLookedAt) {
  check_hdf5_in_children(shell_helper("kill -SEGV $$"));
  write_path_atomically(folder_ / "own.h5", [](const std::filesystem::path& path) {
    Hdf5File out = Hdf5File::create(path);
    out.create_dataset("x", {.shape = {2}});
    out.write("x", {0}, {2}, std::span<const float>(counting(2)));
    out.close();
  });
  EXPECT_THAT(Hdf5File::open(folder_ / "own.h5").dataset_names(), ElementsAre("x"));
}

TEST(Hdf5WalkTest, WalksThroughFilesOfEveryLayoutAndLeavesErrorsToTheReader) {
  const DataFolder folder;
  Hdf5File out = Hdf5File::create(folder / "a.h5");
  out.create_dataset("plain", {.shape = {3, 4}});
  out.create_dataset("packed", {.shape = {3, 4}, .chunk = {2, 4}, .deflate = 4});
  out.create_dataset("empty", {.shape = {0, 4}, .chunk = {1, 4}, .growing = true});
  out.set_string("plain", "units", "K");
  out.close();
  int steps = 0;
  walk_hdf5_file(folder / "a.h5", [&] { ++steps; });
  EXPECT_GT(steps, 10);
  steps = 0;
  std::ofstream(folder / "text.h5") << "no HDF5";
  walk_hdf5_file(folder / "text.h5", [&] { ++steps; });
  EXPECT_EQ(steps, 0);
}

}  // namespace
}  // namespace welkin::data::tests
