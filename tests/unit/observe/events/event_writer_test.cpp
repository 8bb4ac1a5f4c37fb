// SPDX-License-Identifier: Apache-2.0
#include "observe/events/event_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/process/host.h"
#include "core/text.h"
#include "observe/events/protobuf.h"
#include "temporary_folder.h"

namespace welkin::observe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  return bytes;
}

const std::string kWallTime = from_hex("0900002040fc54d941");  // field 1, 1700000000.5

double fixed_time() { return 1700000000.5; }

// The data of each record; checks the framing.
std::vector<std::string> records(const std::filesystem::path& path) {
  const std::string bytes = read_file(path, 1 << 24);
  std::vector<std::string> all;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    all.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(bytes.substr(at, 16 + length), tf_record(all.back()));
    at += 16 + length;
  }
  return all;
}

// The bytes that the tensorboard package's own RecordWriter makes of the first event.
TEST(TfRecord, FramesAsTensorBoardDoes) {
  EXPECT_EQ(tf_record(from_hex("0900002040fc54d9411a0d627261696e2e4576656e743a32")),
            from_hex("1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110"));
}

TEST(Protobuf, EncodesTheExamplesOfItsManual) {
  EXPECT_EQ(ProtobufMessage().integer(1, 150).encoded(), from_hex("089601"));
  EXPECT_EQ(ProtobufMessage().bytes(2, "testing").encoded(), from_hex("120774657374696e67"));
  EXPECT_EQ(ProtobufMessage().integer(1, -2).encoded(), from_hex("08feffffffffffffffff01"));
  EXPECT_EQ(ProtobufMessage().float32(2, 1.0f).float64(1, 1.0).encoded(), from_hex("150000803f09000000000000f03f"));
}

TEST(EventWriter, WritesVersionScalarAndImage) {
  const TemporaryFolder folder;
  EventWriter writer(folder.path(), {.wall_time = fixed_time});
  writer.scalar("Loss/train", 0.5f, 1024);
  writer.png_image("v", "PNG", 4, 2, 0);
  writer.flush();
  EXPECT_THAT(records(writer.path()), ElementsAre(kWallTime + from_hex("1a0d") + "brain.Event:2",
                                                  kWallTime + from_hex("108008") +
                                                      from_hex("2a13"
                                                               "0a11"
                                                               "0a0a") +
                                                      "Loss/train" + from_hex("150000003f"),
                                                  kWallTime +
                                                      from_hex("2a12"
                                                               "0a10"
                                                               "0a0176"
                                                               "220b"
                                                               "0802"
                                                               "1004"
                                                               "1803"
                                                               "2203") +
                                                      "PNG"));
}

TEST(EventWriter, NamesTheFileAndNeverAppendsToAnother) {
  const TemporaryFolder folder;
  const EventWriter first(folder.path(), {.wall_time = fixed_time});
  const EventWriter second(folder.path(), {.wall_time = fixed_time});
  const std::string stem = cat("events.out.tfevents.1700000000.", host_name(), ".", getpid(), ".");
  EXPECT_EQ(first.path().filename(), stem + "0");
  EXPECT_EQ(second.path().filename(), stem + "1");
}

TEST(EventWriter, AResumedRunVoidsLaterSteps) {
  const TemporaryFolder folder;
  const EventWriter writer(folder.path(), {.purge_from_step = 300, .wall_time = fixed_time});
  EXPECT_EQ(records(writer.path()).at(1), kWallTime + from_hex("10ac02") + from_hex("3a020801"));
}

TEST(EventWriter, AFullDiskKeepsWholeRecordsAndTheRestForLater) {
  const TemporaryFolder folder;
  EventWriter writer(folder.path(), {.wall_time = fixed_time});
  writer.png_image("v", std::string(20000, 'x'), 4, 2, 0);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limited{4096, before.rlim_max};
  void (*handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limited);
  EXPECT_THAT([&] { writer.flush(); }, ThrowsMessage<DataError>(HasSubstr("cannot write: path=" + writer.path().string())));
  EXPECT_EQ(records(writer.path()).size(), 1u);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  writer.flush();
  EXPECT_EQ(records(writer.path()).size(), 2u);
}

TEST(EventWriter, AMissingFolderIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { EventWriter(folder / "absent"); }, ThrowsMessage<DataError>(HasSubstr("No such file or directory")));
}

}  // namespace
}  // namespace welkin::observe
