// SPDX-License-Identifier: Apache-2.0
// One training file of gridded fields, in any format of array_file.h: array `fields` (time, channel, lat, lon), any number
// type, with optional attributes `channels`, `units`, `roles` and `mask_of`, arrays of latitude, longitude and time
// (coordinates.h), and an array `static` (channel, lat, lon) of fields that are the same at all times. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/cf/file_times.h"
#include "data/sample/channels/static_channels.h"
#include "data/storage/channel_op.h"
#include "data/storage/chunk_cache.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

struct FieldFacts {
  std::filesystem::path path;
  int64_t steps = 0, channels = 0, height = 0, width = 0;
  std::vector<std::string> channel_names;   // empty when the file does not say
  std::vector<std::string> units;           // the same
  std::vector<std::string> roles;           // attribute `roles` (channel_roles.h); the same
  std::vector<std::string> mask_of;         // attribute `mask_of`: "" or the channels of which it says where they have values
  std::vector<std::string> static_names;    // of the array `static` (channel, lat, lon); empty where there is none
  std::vector<double> latitude, longitude;  // degrees; empty when the file does not say
  std::vector<int64_t> time;  // seconds since 1970-01-01 of `calendar`, size steps; empty when the file does not say
  std::string calendar = "proleptic_gregorian";
  std::string time_without_units;  // the array of times that has no units: `time` is empty then
  Missing missing = Missing::None;
  bool has_holes = false;     // attribute missing=hole: such points are to have no weight
  std::string place_note;     // latitudes that are assumed, where the file does not give them
  int64_t member = 0;         // attribute `member` of the file: one of an ensemble
  bool fields_alone = false;  // the file holds nothing else, as those of the tutorials
};

// Rows and columns of a field.
struct FieldWindow {
  int64_t row = 0, column = 0, height = 0, width = 0;
};

// Channels that lie one after the other.
struct ChannelRun {
  int64_t first = 0, count = 0;
};

// Thread-safe after construction.
class FieldFile {
 public:
  // DataError when there is no usable `fields`. `cache`: of decoded chunks, where several files share one.
  explicit FieldFile(const std::filesystem::path& path, std::shared_ptr<ChunkCache> cache = nullptr, const TimeKeys& keys = {});
  // Takes arrays that are open already, such as a part of an archive.
  explicit FieldFile(const ArrayFile& file, const TimeKeys& keys = {});

  // Reads all values into memory; later reads come from there. Not while another thread reads. DataError where they do not fit.
  void hold();

  const FieldFacts& facts() const { return facts_; }

  // Takes over the channels of another file from now on, found by their names, with its roles. One that is not here is NaN. It
  // does nothing where one of the two does not name its channels. Not while another thread reads.
  void arrange_like(const FieldFacts& other);
  // False for a channel of the other file that is not here.
  bool has_channel(int64_t channel) const { return absent_.empty() || !absent_[static_cast<size_t>(channel)]; }

  // Channels of one time, (channels.count, window.height, window.width) row-major. `ops`: one per channel, applied while the
  // values just read are in the cache; null leaves the values as they are.
  void read(int64_t step, const ChannelRun& channels, const FieldWindow& window, std::span<float> out,
            const ChannelOp* ops = nullptr) const;
  // The array `static`, whole, with its statistics; without names where the file has none.
  StaticFields statics() const;
  // One channel of one time, row-major.
  void read_channel(int64_t step, int64_t channel, const FieldWindow& window, std::span<float> out) const;
  // Bytes that reads have asked of the file so far.
  uint64_t bytes_requested() const { return fields_->bytes_requested(); }

  // The fields themselves, (time, channel, lat, lon).
  const StoredArray& fields() const { return *fields_; }

 private:
  void read_transformed(int64_t step, int64_t channel, const FieldWindow& window, std::span<float> out,
                        const ChannelOp& op) const;

  void copy_mapped(int64_t step, const ChannelRun& channels, const FieldWindow& window, std::span<float> out,
                   const ChannelOp* ops) const;

  FieldFacts facts_;
  StoredArrayPtr fields_;
  StoredArrayPtr statics_;  // null where there is none
  std::vector<std::string> static_units_;
  std::vector<bool> absent_;            // by channel; empty: all are here
  std::optional<MappedFloats> mapped_;  // of fields_
};

// DataError where the file does not say the time of every step. `purpose`: what needs it, "forcing"; `remedy`: to do without.
void need_times(const FieldFacts& facts, std::string_view purpose, std::string_view remedy);

// The training files directly inside `folder`, sorted by name: its HDF5 files (known by their content or by .h5). Without
// these, files and folders of the other formats of array_file.h; without these too, its npy files but for statistics. DataError
// when there is none.
std::vector<std::filesystem::path> list_field_files(const std::filesystem::path& folder);

}  // namespace welkin::data
