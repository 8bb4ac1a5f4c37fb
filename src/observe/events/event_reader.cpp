// SPDX-License-Identifier: Apache-2.0
// Field numbers of tensorflow/core/util/event.proto, framework/summary.proto and framework/tensor.proto.
#include "observe/events/event_reader.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "core/hash.h"
#include "observe/events/protobuf_reader.h"

namespace welkin::observe {
namespace {

constexpr size_t kLengthBytes = 8, kChecksumBytes = 4;
constexpr size_t kRecordBytes = kLengthBytes + 2 * kChecksumBytes;  // besides the data

uint64_t unsigned_at(std::span<const std::byte> file, size_t at, size_t num_bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < num_bytes; ++i) value |= uint64_t{std::to_integer<uint8_t>(file[at + i])} << (8 * i);
  return value;
}

void check(std::span<const std::byte> bytes, uint64_t checksum, size_t record_at, std::string_view source) {
  if (mask_crc32c(crc32c(bytes)) == checksum) return;
  throw DataError("events", cat("a record has another checksum than it says: at=", record_at, ", file=", source),
                  "The file is damaged, or no event file: copy it again, or leave it out");
}

// Returns the data of the record at `at` and moves `at` behind it. Nothing if the file ends before the record does.
std::optional<std::string_view> next_record(std::span<const std::byte> file, size_t& at, std::string_view source) {
  const size_t left = file.size() - at;
  if (left < kLengthBytes + kChecksumBytes) return std::nullopt;
  check(file.subspan(at, kLengthBytes), unsigned_at(file, at + kLengthBytes, kChecksumBytes), at, source);
  const uint64_t length = unsigned_at(file, at, kLengthBytes);
  if (left < kRecordBytes || length > left - kRecordBytes) return std::nullopt;
  const auto data = file.subspan(at + kLengthBytes + kChecksumBytes, length);
  check(data, unsigned_at(file, at + kLengthBytes + kChecksumBytes + length, kChecksumBytes), at, source);
  at += kRecordBytes + length;
  return std::string_view(reinterpret_cast<const char*>(data.data()), data.size());
}

// The value of a TensorProto with one float32 or float64.
std::optional<double> tensor_value(std::string_view message, std::string_view source) {
  constexpr uint32_t kType = 1, kContent = 4, kFloats = 5, kDoubles = 6;
  constexpr uint64_t kFloat32 = 1, kFloat64 = 2;
  uint64_t type = 0;
  std::string_view bytes;
  ProtobufReader reader(message, source);
  while (const auto field = reader.next()) {
    if (field->is(kType, WireType::Varint)) type = field->bits;
    if (field->is(kFloats, WireType::Fixed32)) return field->float32();
    if (field->is(kDoubles, WireType::Fixed64)) return field->float64();
    if (field->type == WireType::Bytes && (field->number == kContent || field->number == kFloats || field->number == kDoubles)) {
      bytes = field->bytes;
    }
  }
  const auto as = [&]<typename T>(T value) {
    std::memcpy(&value, bytes.data(), sizeof(T));
    return static_cast<double>(value);
  };
  if (type == kFloat32 && bytes.size() == sizeof(float)) return as(float{});
  if (type == kFloat64 && bytes.size() == sizeof(double)) return as(double{});
  return std::nullopt;
}

struct SummaryValue {
  std::string_view tag{};
  std::optional<double> value{};  // nothing: a picture, a histogram, a text
  std::string_view png{};
};

std::string_view png_of(std::string_view image, std::string_view source) {
  constexpr uint32_t kEncoded = 4;
  constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
  std::string_view encoded;
  ProtobufReader reader(image, source);
  while (const auto field = reader.next()) {
    if (field->is(kEncoded, WireType::Bytes)) encoded = field->bytes;
  }
  return encoded.starts_with(kSignature) ? encoded : std::string_view();
}

SummaryValue summary_value(std::string_view message, std::string_view source) {
  constexpr uint32_t kTag = 1, kSimpleValue = 2, kImage = 4, kTensor = 8;
  SummaryValue summary;
  ProtobufReader reader(message, source);
  while (const auto field = reader.next()) {
    if (field->is(kTag, WireType::Bytes)) summary.tag = field->bytes;
    if (field->is(kSimpleValue, WireType::Fixed32)) summary.value = field->float32();
    if (field->is(kImage, WireType::Bytes)) summary.png = png_of(field->bytes, source);
    if (field->is(kTensor, WireType::Bytes)) summary.value = tensor_value(field->bytes, source);
  }
  return summary;
}

struct EventRecord {
  double wall_time = 0;
  int64_t step = 0;
  std::string_view summary{}, session_log{};
};

EventRecord event_fields(std::string_view message, std::string_view source) {
  constexpr uint32_t kWallTime = 1, kStep = 2, kSummary = 5, kSessionLog = 7;
  EventRecord event;
  ProtobufReader reader(message, source);
  while (const auto field = reader.next()) {
    if (field->is(kWallTime, WireType::Fixed64) && std::isfinite(field->float64())) event.wall_time = field->float64();
    if (field->is(kStep, WireType::Varint)) event.step = static_cast<int64_t>(field->bits);
    if (field->is(kSummary, WireType::Bytes)) event.summary = field->bytes;
    if (field->is(kSessionLog, WireType::Bytes)) event.session_log = field->bytes;
  }
  return event;
}

bool is_start(std::string_view session_log, std::string_view source) {
  constexpr uint32_t kStatus = 1;
  constexpr uint64_t kStart = 1;
  ProtobufReader reader(session_log, source);
  while (const auto field = reader.next()) {
    if (field->is(kStatus, WireType::Varint) && field->bits == kStart) return true;
  }
  return false;
}

void drop_from(int64_t step, EventScalars& scalars) {
  for (auto& [tag, points] : scalars.by_tag)
    std::erase_if(points, [step](const ScalarPoint& point) { return point.step >= step; });
  for (auto& [tag, pictures] : scalars.pictures)
    std::erase_if(pictures, [step](const EventPicture& picture) { return picture.step >= step; });
}

// Bounds the memory: of too many pictures every second one is dropped, and the newest stays.
void add_picture(std::vector<EventPicture>& pictures, EventPicture picture) {
  constexpr size_t kMostPictures = 48;
  if (pictures.size() >= kMostPictures) {
    for (size_t i = 1; 2 * i < pictures.size(); ++i) pictures[i] = std::move(pictures[2 * i]);
    pictures.resize(pictures.size() / 2);
  }
  pictures.push_back(std::move(picture));
}

void add_event(std::string_view message, std::string_view source, EventScalars& scalars) {
  constexpr uint32_t kValue = 1;
  const EventRecord event = event_fields(message, source);
  if (scalars.first_wall_time == 0) scalars.first_wall_time = event.wall_time;
  if (!event.session_log.empty() && is_start(event.session_log, source)) drop_from(event.step, scalars);
  ProtobufReader reader(event.summary, source);
  while (const auto field = reader.next()) {
    if (!field->is(kValue, WireType::Bytes)) continue;
    const SummaryValue summary = summary_value(field->bytes, source);
    if (summary.tag.empty()) continue;
    if (!summary.png.empty())
      add_picture(scalars.pictures[std::string(summary.tag)], {event.step, event.wall_time, std::string(summary.png)});
    if (!summary.value) continue;
    scalars.by_tag[std::string(summary.tag)].push_back({event.step, event.wall_time, *summary.value});
  }
}

}  // namespace

void read_events(std::span<const std::byte> file, std::string_view source, EventScalars& scalars) {
  size_t at = 0;
  while (at < file.size()) {
    const auto record = next_record(file, at, source);
    if (!record) {
      scalars.is_cut = true;
      return;
    }
    add_event(*record, source, scalars);
  }
}

}  // namespace welkin::observe
