// SPDX-License-Identifier: Apache-2.0
#include "observe/events/event_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "observe/events/event_writer.h"
#include "observe/events/protobuf.h"
#include "observe/events/protobuf_reader.h"
#include "temporary_folder.h"

namespace welkin::observe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

auto point(int64_t step, double value) {
  return AllOf(Field(&ScalarPoint::step, step), Field(&ScalarPoint::value, value), Field(&ScalarPoint::wall_time, 1700000000.5));
}

EventScalars read(std::string_view bytes) {
  EventScalars scalars;
  read_events(std::as_bytes(std::span(bytes)), "f", scalars);
  return scalars;
}

std::string event_with(const ProtobufMessage& value, int64_t step) {
  ProtobufMessage summary, event;
  summary.bytes(1, value.encoded());
  return tf_record(event.float64(1, 1700000000.5).integer(2, step).bytes(5, summary.encoded()).encoded());
}

std::string written_file(const std::filesystem::path& folder) {
  EventWriter writer(folder, {.wall_time = [] { return 1700000000.5; }});
  writer.scalar("Loss/train", 0.5f, 0);
  writer.scalar("Loss/train", 0.25f, 64);
  writer.png_image("picture", "PNG", 1, 1, 64);
  writer.scalar("Learning Rate", 2.0f, 64);
  writer.flush();
  return read_file(writer.path(), 1 << 20);
}

TEST(EventReader, ReadsWhatTheWriterWrote) {
  const TemporaryFolder folder;
  const EventScalars scalars = read(written_file(folder.path()));
  EXPECT_EQ(scalars.by_tag.size(), 2u) << "a picture is no scalar";
  EXPECT_THAT(scalars.by_tag.at("Loss/train"), ElementsAre(point(0, 0.5), point(64, 0.25)));
  EXPECT_THAT(scalars.by_tag.at("Learning Rate"), ElementsAre(point(64, 2.0)));
  EXPECT_EQ(scalars.first_wall_time, 1700000000.5);
  EXPECT_FALSE(scalars.is_cut);
}

TEST(EventReader, TensorsOfOneNumberAreScalarsToo) {
  const auto value_of = [](const ProtobufMessage& tensor) {
    ProtobufMessage value;
    const EventScalars scalars = read(event_with(value.bytes(1, "t").bytes(8, tensor.encoded()), 3));
    return scalars.by_tag.empty() ? -1.0 : scalars.by_tag.at("t").at(0).value;
  };
  const float quarter = 0.25f;
  std::string four(sizeof(float), '\0');
  std::memcpy(four.data(), &quarter, four.size());
  const double eighth = 0.125;
  std::string eight(sizeof(double), '\0');
  std::memcpy(eight.data(), &eighth, eight.size());
  EXPECT_EQ(value_of(ProtobufMessage().integer(1, 1).bytes(4, four)), 0.25);
  EXPECT_EQ(value_of(ProtobufMessage().integer(1, 1).bytes(5, four)), 0.25) << "packed";
  EXPECT_EQ(value_of(ProtobufMessage().integer(1, 1).float32(5, 0.5f)), 0.5) << "not packed";
  EXPECT_EQ(value_of(ProtobufMessage().integer(1, 2).bytes(4, eight)), 0.125);
  EXPECT_EQ(value_of(ProtobufMessage().integer(1, 1).bytes(4, eight)), -1.0) << "two floats are no scalar";
  EXPECT_EQ(value_of(ProtobufMessage().integer(1, 7).bytes(4, four)), -1.0) << "a text is no scalar";
}

TEST(EventReader, ARestartVoidsWhatCameAfterItsStep) {
  const TemporaryFolder folder;
  std::string bytes = written_file(folder.path());
  {
    EventWriter resumed(folder.path(), {.purge_from_step = 1, .wall_time = [] { return 1700000000.5; }});
    resumed.scalar("Loss/train", 0.125f, 64);
    resumed.flush();
    bytes += read_file(resumed.path(), 1 << 20);
  }
  EXPECT_THAT(read(bytes).by_tag.at("Loss/train"), ElementsAre(point(0, 0.5), point(64, 0.125)));
  EXPECT_TRUE(read(bytes).by_tag.at("Learning Rate").empty());
}

// A run that is going on has half a record at its end, wherever it is cut.
TEST(EventReader, ALastRecordThatIsCutShortIsLeftOut) {
  const TemporaryFolder folder;
  const std::string bytes = written_file(folder.path());
  size_t most = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const EventScalars scalars = read(std::string_view(bytes).substr(0, size));
    size_t points = 0;
    for (const auto& [tag, values] : scalars.by_tag) points += values.size();
    EXPECT_GE(points, most) << size;
    most = points;
  }
  EXPECT_EQ(most, 2u);
  EXPECT_TRUE(read(std::string_view(bytes).substr(0, bytes.size() - 1)).is_cut);
}

TEST(EventReader, EveryFlippedBitIsRefused) {
  const TemporaryFolder folder;
  const std::string bytes = written_file(folder.path());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 16);
    EXPECT_THAT([&] { read(damaged); },
                ThrowsMessage<DataError>(HasSubstr("[events] a record has another checksum than it says: at=")))
        << i;
  }
}

TEST(EventReader, MessagesThatAreNoneAreRefusedByName) {
  const auto refusal = [](std::string_view message) {
    try {
      read(tf_record(message));
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal("\x2a\x7f"), HasSubstr("[events] not a protocol buffer message: a field is longer than its message, at=2"));
  EXPECT_THAT(refusal("\x09\x01"), HasSubstr("a field is longer than its message"));
  EXPECT_THAT(refusal("\x0b"), HasSubstr("a field of an unknown wire type"));
  EXPECT_THAT(refusal(std::string_view("\x00", 1)), HasSubstr("a field has no number"));
  EXPECT_THAT(refusal("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), HasSubstr("a number of more than ten bytes"));
  EXPECT_EQ(refusal("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "accepted") << "a negative step";
}

}  // namespace
}  // namespace welkin::observe
