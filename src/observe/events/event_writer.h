// SPDX-License-Identifier: Apache-2.0
// TensorBoard event files: old-style scalars (simple_value) and PNG images, readable by the `tensorboard` package. One writer per
// run, on the logging rank only. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"
#include "observe/image/raster.h"

namespace welkin::observe {

struct EventWriterOptions {
  // After a resume: TensorBoard drops the values of earlier files of the folder from this step on.
  std::optional<int64_t> purge_from_step{};
  // Seconds since 1970; empty means the system's clock.
  std::function<double()> wall_time{};
};

class EventWriter {
 public:
  // Starts a new file events.out.tfevents.<unix time>.<host>.<pid>.<n> in an existing folder; n is the first free number.
  explicit EventWriter(const std::filesystem::path& folder, EventWriterOptions options = {});
  // Writes buffered records. An error here is lost: call flush() before, which throws.
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void scalar(std::string_view tag, float value, int64_t step);
  void image(std::string_view tag, const image::Raster& raster, int64_t step);
  // `png` is a whole PNG file of an RGB image.
  void png_image(std::string_view tag, std::string_view png, int width, int height, int64_t step);

  // Passes all buffered records to the system. On failure (DataError) the file keeps whole records only, and the rest stays
  // buffered.
  void flush();

  const std::filesystem::path& path() const { return path_; }

 private:
  void append(std::string_view event);

  EventWriterOptions options_;
  std::filesystem::path path_;
  FileDescriptor file_;
  std::string buffer_;
  int64_t written_bytes_ = 0;
};

// A TFRecord: length, masked CRC-32C of the length, data, masked CRC-32C of the data (tensorflow/core/lib/io/record_writer.h).
std::string tf_record(std::string_view data);

}  // namespace welkin::observe
