// SPDX-License-Identifier: Apache-2.0
#include "observe/events/event_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "core/fault/wall_clock.h"
#include "core/hash.h"
#include "core/process/host.h"
#include "core/text.h"
#include "observe/events/protobuf.h"
#include "observe/image/png.h"

namespace welkin::observe {
namespace {

// Field numbers of tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
namespace event_field {
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace session_log_field {
constexpr uint32_t kStatus = 1;
constexpr int64_t kStart = 1;
}  // namespace session_log_field
namespace summary_field {
constexpr uint32_t kValue = 1;
}
namespace value_field {
constexpr uint32_t kTag = 1, kSimpleValue = 2, kImage = 4;
}
namespace image_field {
constexpr uint32_t kHeight = 1, kWidth = 2, kColorspace = 3, kEncoded = 4;
constexpr int64_t kRgb = 3;
}  // namespace image_field

double system_seconds() { return std::chrono::duration<double>(wall_now().time_since_epoch()).count(); }

std::string little_endian(uint64_t value, int num_bytes) {
  std::string bytes;
  for (int i = 0; i < num_bytes; ++i, value >>= 8) bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string masked_crc(std::string_view bytes) { return little_endian(mask_crc32c(crc32c(as_byte_span(bytes))), 4); }

ProtobufMessage event_head(double wall_time, int64_t step) {
  ProtobufMessage event;
  event.float64(event_field::kWallTime, wall_time);
  if (step != 0) event.integer(event_field::kStep, step);
  return event;
}

std::string summary_event(double wall_time, int64_t step, const ProtobufMessage& value) {
  ProtobufMessage summary;
  summary.bytes(summary_field::kValue, value.encoded());
  return event_head(wall_time, step).bytes(event_field::kSummary, summary.encoded()).encoded();
}

std::filesystem::path event_path(const std::filesystem::path& folder, double wall_time, int n) {
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%010lld", static_cast<long long>(wall_time));
  return folder / cat("events.out.tfevents.", seconds, ".", host_name(), ".", ::getpid(), ".", n);
}

}  // namespace

std::string tf_record(std::string_view data) {
  const std::string length = little_endian(data.size(), 8);
  return cat(length, masked_crc(length), data, masked_crc(data));
}

EventWriter::EventWriter(const std::filesystem::path& folder, EventWriterOptions options) : options_(std::move(options)) {
  if (!options_.wall_time) options_.wall_time = system_seconds;
  const double now = options_.wall_time();
  for (int n = 0; !file_; ++n) {
    path_ = event_path(folder, now, n);
    file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file_ && errno != EEXIST) throw file_error("create", path_, errno);
  }
  append(event_head(now, 0).bytes(event_field::kFileVersion, "brain.Event:2").encoded());
  if (options_.purge_from_step) {
    ProtobufMessage session;
    session.integer(session_log_field::kStatus, session_log_field::kStart);
    append(event_head(now, *options_.purge_from_step).bytes(event_field::kSessionLog, session.encoded()).encoded());
  }
  flush();
}

EventWriter::~EventWriter() {
  try {
    flush();
  } catch (const DataError&) {  // callers learn of errors by flush()
  }
}

void EventWriter::scalar(std::string_view tag, float value, int64_t step) {
  ProtobufMessage entry;
  entry.bytes(value_field::kTag, tag).float32(value_field::kSimpleValue, value);
  append(summary_event(options_.wall_time(), step, entry));
}

void EventWriter::image(std::string_view tag, const image::Raster& raster, int64_t step) {
  png_image(tag, image::encode_png(raster), raster.width(), raster.height(), step);
}

void EventWriter::png_image(std::string_view tag, std::string_view png, int width, int height, int64_t step) {
  ProtobufMessage image;
  image.integer(image_field::kHeight, height)
      .integer(image_field::kWidth, width)
      .integer(image_field::kColorspace, image_field::kRgb);
  image.bytes(image_field::kEncoded, png);
  ProtobufMessage entry;
  entry.bytes(value_field::kTag, tag).bytes(value_field::kImage, image.encoded());
  append(summary_event(options_.wall_time(), step, entry));
}

void EventWriter::append(std::string_view event) { buffer_ += tf_record(event); }

void EventWriter::flush() {
  try {
    write_fully(file_, path_, buffer_);
  } catch (const DataError&) {
    // Half a record would make everything after it unreadable. If even this fails, readers stop at the half record.
    if (::ftruncate(file_.get(), written_bytes_) == 0) ::lseek(file_.get(), written_bytes_, SEEK_SET);
    throw;
  }
  written_bytes_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
}

}  // namespace welkin::observe
