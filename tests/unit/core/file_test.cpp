// SPDX-License-Identifier: Apache-2.0
#include "core/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "core/error.h"
#include "core/fault/write_watch.h"
#include "core/file_descriptor.h"
#include "core/files_together.h"
#include "core/hash.h"
#include "core/output_check.h"

namespace welkin {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string pattern = (fs::temp_directory_path() / "welkin_file_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~FileTest() override { fs::remove_all(folder_); }
  size_t entries() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator())); }

  fs::path folder_;
};

// No byte beyond `bytes` can be written to a file while this lives: a full disk in miniature.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(FileTest, WritesReadsAndReplaces) {
  const fs::path path = folder_ / "a.bin";
  const std::string bytes("with\0a zero", 11);
  write_file_atomically(path, "old");
  write_file_atomically(path, bytes);
  EXPECT_EQ(read_file(path, 11), bytes);
  EXPECT_EQ(entries(), 1u) << "the temporary file stayed";
}

TEST_F(FileTest, ReadRefusesWhatIsTooLargeAbsentOrNoFile) {
  write_file_atomically(folder_ / "a", "12345");
  EXPECT_THAT([&] { read_file(folder_ / "a", 4); },
              ThrowsMessage<DataError>(HasSubstr("limit=4. Check that this is the right file.")));
  EXPECT_THAT(
      [&] { read_file(folder_ / "b", 4); },
      ThrowsMessage<DataError>(HasSubstr("[file] cannot open: path=" + (folder_ / "b").string() + ", reason=No such file")));
  EXPECT_THAT([&] { read_file(folder_, 4); }, ThrowsMessage<DataError>(HasSubstr("not a regular file")));
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT([&] { read_file(folder_ / "pipe", 4); }, ThrowsMessage<DataError>(HasSubstr("not a regular file")));
}

TEST_F(FileTest, ReadsFilesThatHideTheirSize) { EXPECT_THAT(read_file("/proc/self/status", 1 << 20), HasSubstr("Umask")); }

TEST_F(FileTest, FullDiskLeavesTheOldFileAndNoTemporary) {
  const fs::path path = folder_ / "a";
  write_file_atomically(path, "old");
  const FileSizeLimit limit(4096);
  EXPECT_THAT(
      [&] { write_file_atomically(path, std::string(10000, 'x')); },
      ThrowsMessage<DataError>(HasSubstr("cannot write: path=" + path.string() + ", reason=File too large. Raise the limit")));
  EXPECT_EQ(read_file(path, 100), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, NoSpaceLeftIsNamedWithItsRemedy) {
  const FileDescriptor full = open_file("/dev/full", O_WRONLY);
  EXPECT_THAT([&] { write_fully(full, "/dev/full", "y"); },
              ThrowsMessage<DataError>(HasSubstr("No space left on device. Free space on that disk (or quota)")));
}

TEST_F(FileTest, WriterThatThrowsLeavesNothing) {
  EXPECT_THROW(write_path_atomically(folder_ / "a", [](const fs::path&) { throw DataError("test", "no", "stop"); }), DataError);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(FileTest, WriterMayReplaceTheTemporaryFile) {
  write_path_atomically(folder_ / "a", [](const fs::path& path) {
    fs::remove(path);
    std::ofstream(path) << "new";
  });
  EXPECT_EQ(read_file(folder_ / "a", 100), "new");
}

TEST_F(FileTest, FilesTogetherAppearWhenAllAreWritten) {
  const auto put = [](const char* text) { return [text](const fs::path& path) { std::ofstream(path) << text; }; };
  FilesTogether files;
  files.write(folder_ / "a", put("one"));
  files.write(folder_ / "b", put("two"));
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  files.finish();
  EXPECT_EQ(read_file(folder_ / "a", 100) + read_file(folder_ / "b", 100), "onetwo");
  EXPECT_EQ(entries(), 2u) << "a temporary file stayed";
}

TEST_F(FileTest, OfFilesTogetherAnUnfinishedOneLeavesNothing) {
  {
    FilesTogether files;
    files.write(folder_ / "a", [](const fs::path&) {});
    EXPECT_THROW(files.write(folder_ / "b", [](const fs::path&) { throw DataError("test", "no", "stop"); }), DataError);
  }
  EXPECT_EQ(entries(), 0u);
}

// A disk that refuses late is heard, and no file has its name then.
TEST_F(FileTest, EachOfFilesTogetherIsSyncedBeforeOneIsRenamed) {
  std::vector<std::string> stages;
  const WriteWatchScope watch([&](WriteStage stage, const fs::path& path) {
    if (stage == WriteStage::Sync) stages.push_back(fs::is_directory(path) ? "folder" : "sync");
    if (stage == WriteStage::Rename) stages.push_back("rename");
    return 0;
  });
  FilesTogether files;
  files.write(folder_ / "a", [](const fs::path&) {});
  files.write(folder_ / "b", [](const fs::path&) {});
  files.finish();
  EXPECT_THAT(stages, testing::ElementsAre("sync", "sync", "rename", "rename", "folder"));
}

TEST_F(FileTest, DevicesAndPipesAreWrittenToAndStay) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const FileDescriptor reader = open_file(pipe, O_RDONLY | O_NONBLOCK);
  write_file_atomically(pipe, "figures");
  EXPECT_TRUE(fs::is_fifo(pipe)) << "a file has taken its place";
  std::string said(7, ' ');
  EXPECT_EQ(::read(reader.get(), said.data(), said.size()), 7);
  EXPECT_EQ(said, "figures");
  EXPECT_THAT([&] { write_path_atomically(pipe, [](const fs::path&) {}); }, ThrowsMessage<DataError>(HasSubstr("Name a file")));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, ALinkStaysAndWhatItNamesIsReplaced) {
  write_file_atomically(folder_ / "a", "old");
  fs::create_symlink("a", folder_ / "link");
  write_file_atomically(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "a", 100), "new");
  fs::create_symlink("nothing", folder_ / "dangling");
  write_file_atomically(folder_ / "dangling", "new");
  EXPECT_EQ(read_file(folder_ / "dangling", 100), "new");
}

TEST_F(FileTest, TroubleWithAnOutputIsKnownBefore) {
  EXPECT_EQ(trouble_with_output(folder_ / "new.json"), "");
  EXPECT_EQ(trouble_with_output("/dev/null"), "");
  EXPECT_EQ(trouble_with_output(""), "it has no name");
  EXPECT_EQ(trouble_with_output(folder_), "it is a folder");
  EXPECT_EQ(trouble_with_output(folder_ / "no/new.json"), "there is no folder " + (folder_ / "no").string());
  EXPECT_NO_THROW(check_output("test", "--json", folder_ / "new.json"));
  EXPECT_THAT(
      [&] { check_output("test", "--json", folder_); },
      ThrowsMessage<ConfigError>("[test] this file cannot be written: --json=" + folder_.string() +
                                 ", because it is a folder. Name a file in a folder that is there and may be written to."));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(FileTest, NewFilesFollowTheUmask) {
  const mode_t before = umask(022);
  write_file_atomically(folder_ / "a", "x");
  umask(before);
  EXPECT_EQ(fs::status(folder_ / "a").permissions(), static_cast<fs::perms>(0644));
}

TEST_F(FileTest, PublishMovesAFolderButReplacesNone) {
  make_folders(folder_ / "from" / "deep");
  write_file_atomically(folder_ / "from" / "deep" / "a", "x");
  make_folders(folder_ / "taken");  // empty: rename(2) alone would replace it
  EXPECT_THAT([&] { publish_folder(folder_ / "from", folder_ / "taken"); }, ThrowsMessage<DataError>(HasSubstr("File exists")));
  publish_folder(folder_ / "from", folder_ / "to");
  EXPECT_EQ(read_file(folder_ / "to" / "deep" / "a", 10), "x");
  EXPECT_FALSE(fs::exists(folder_ / "from"));
}

TEST_F(FileTest, MakeFoldersNamesTheFirstMissingParent) {
  write_file_atomically(folder_ / "file", "");
  EXPECT_THAT([&] { make_folders(folder_ / "file" / "x" / "y"); },
              ThrowsMessage<DataError>(
                  testing::AllOf(HasSubstr("path=" + (folder_ / "file" / "x").string()), HasSubstr("Not a directory"))));
}

TEST_F(FileTest, MappingShowsTheBytes) {
  write_file_atomically(folder_ / "a", "abc");
  write_file_atomically(folder_ / "empty", "");
  const MappedFile mapped(folder_ / "a");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()), "abc");
  EXPECT_TRUE(MappedFile(folder_ / "empty").bytes().empty());
}

TEST_F(FileTest, HashOfAFileEqualsTheHashOfItsBytes) {
  const std::string bytes(3 << 20, 'q');
  write_file_atomically(folder_ / "a", bytes);
  EXPECT_EQ(xxh3_64_of_file(folder_ / "a"), xxh3_64(as_byte_span(bytes)));
}

}  // namespace
}  // namespace welkin
