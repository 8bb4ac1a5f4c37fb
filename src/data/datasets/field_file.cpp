// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/field_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/printable.h"
#include "core/text.h"
#include "data/cf/coordinates.h"
#include "data/formats/array_file.h"
#include "data/storage/array_views.h"
#include "data/storage/axis_names.h"
#include "data/storage/host_memory.h"

namespace welkin::data {
namespace {

constexpr const char* kFields = "fields";
constexpr const char* kStatic = "static";
// Values read between two transforms: half of a small second-level cache.
constexpr int64_t kBlockValues = 64 << 10;

[[noreturn]] void refuse_fields(const ArrayFacts& fields) {
  throw DataError("data", cat("fields of wrong shape: path=", fields.source, ", shape=", extents_text(fields.shape)),
                  "Store them as (time, channel, lat, lon)");
}

std::vector<std::string_view> names_of_axis(AxisKind kind) {
  const auto names = axis_names(kind);
  return {names.begin(), names.end()};
}

// The names that each axis of the fields may have: time, channel, rows, columns.
using AxisWords = std::vector<std::vector<std::string_view>>;

// One axis of an unknown name is the one that is left. Of more, each must stand where it does in our order.
void place_unknown_axes(const ArrayFacts& facts, AxisWords& words) {
  std::vector<size_t> unknown, left;
  bool is_moved = false;
  for (size_t d = 0; d < facts.axes.size(); ++d) {
    const auto is_it = [&](const auto& names) { return is_among(names, facts.axes[d]); };
    const auto known = std::ranges::find_if(words, is_it);
    if (known == words.end()) unknown.push_back(d);
    const bool is_letter = facts.axes[d].size() == 1;  // a, b, c, d: no meaning
    if (known != words.end() && !is_letter && known - words.begin() != static_cast<std::ptrdiff_t>(d)) is_moved = true;
    if (std::ranges::none_of(facts.axes, [&](const std::string& name) { return is_among(words[d], name); })) left.push_back(d);
  }
  if (unknown.size() == 1 && left.size() == 1) words[left[0]].emplace_back(facts.axes[unknown[0]]);
  if (unknown.size() < 2 || !is_moved) return;
  throw DataError("data",
                  cat("axes of fields whose order is not known: path=", facts.source, ", axes=(",
                      printable(join(facts.axes, ", ")), "), shape=", extents_text(facts.shape)),
                  "Name them time, channel, lat and lon, in any order");
}

// The fields with their axes in order: where the file names its axes, they may stand in any order.
StoredArrayPtr ordered_fields(const StoredArrayPtr& fields) {
  const ArrayFacts& facts = fields->facts();
  if (facts.shape.size() != 4 || std::ranges::count(facts.shape, 0) > 0) refuse_fields(facts);
  if (facts.axes.size() != 4) return fields;
  AxisWords words{names_of_axis(AxisKind::Time), names_of_axis(AxisKind::Channel), names_of_axis(AxisKind::Latitude),
                  names_of_axis(AxisKind::Longitude)};
  for (const std::string_view name : axis_names(AxisKind::Lead)) words[0].push_back(name);
  place_unknown_axes(facts, words);
  return with_axes(fields, words);
}

std::vector<std::string> checked_texts(const ArrayFile& file, std::string_view attribute, std::vector<std::string> texts,
                                       int64_t channels) {
  if (texts.empty() || static_cast<int64_t>(texts.size()) == channels) return texts;
  throw DataError("data",
                  cat("an attribute does not fit its data set: path=", file.path.string(), ", attribute=", attribute,
                      ", values=", texts.size(), ", channels=", channels),
                  "Write one text per channel");
}

// A single text holds for all channels, as in the CF conventions.
std::vector<std::string> units_of_channels(const ArrayFile& file, const std::string& object, int64_t channels) {
  std::vector<std::string> units = file.texts(object, "units");
  if (units.size() == 1) units.resize(static_cast<size_t>(channels), units.front());
  return checked_texts(file, "units", std::move(units), channels);
}

// Requires (channel, lat, lon) on the grid of the fields.
void check_static(const ArrayFacts& statics, const FieldFacts& facts) {
  const Extents& shape = statics.shape;
  if (shape.size() == 3 && shape[0] > 0 && shape[1] == facts.height && shape[2] == facts.width) return;
  throw DataError("data",
                  cat("static fields of wrong shape: path=", facts.path.string(), ", shape=", extents_text(shape),
                      ", grid=", facts.height, " x ", facts.width),
                  "Store them as (channel, lat, lon) on the grid of the fields");
}

std::vector<std::string> static_names(const ArrayFile& file, int64_t count) {
  std::vector<std::string> names = checked_texts(file, "channels", file.texts(kStatic, "channels"), count);
  for (auto c = static_cast<int64_t>(names.size()); c < count; ++c) names.push_back(cat(kStatic, c));
  return names;
}

void add_times(const ArrayFile& file, const TimeKeys& keys, FieldFacts& facts) {
  const std::string name = find_coordinate(file, CoordinateKind::Time, facts.steps);
  if (name.empty()) return;
  FileTimes times = read_times(file, name, keys);
  if (static_cast<int64_t>(times.stored.size()) != facts.steps) {
    throw DataError("data",
                    cat("a coordinate does not fit the fields: path=", file.path.string(), ", dataset=", name,
                        ", values=", times.stored.size(), ", expected=", facts.steps),
                    "Make the file again");
  }
  check_time_order(times, file.path.string(), name);
  if (times.seconds.empty()) facts.time_without_units = name;
  facts.time = std::move(times.seconds);
  facts.calendar = name_of(written_calendar(times.calendar));
}

void add_places(const ArrayFile& file, FieldFacts& facts) {
  const Extents grid{facts.height, facts.width};
  PlaceAxis latitude = read_places(file, CoordinateKind::Latitude, grid);
  facts.longitude = read_places(file, CoordinateKind::Longitude, grid).degrees;
  facts.latitude = std::move(latitude.degrees);
  facts.fields_alone = file.arrays.size() + file.not_numbers.size() == 1;
  if (!facts.latitude.empty()) return;
  const std::string reason = latitude.problem.empty() ? "" : cat(" (", latitude.problem, ")");
  facts.place_note =
      cat(facts.fields_alone ? "The files hold nothing but fields" : "The files do not say the latitudes of their rows", reason,
          ": scores weight the rows as equally spaced from pole to pole. An array latitude of one value for each row, in "
          "degrees, sets them.");
}

// Sizes may be damaged, and take no place in a file whose chunks were never written.
void require_possible_fields(const std::filesystem::path& path, const Extents& shape) {
  constexpr int64_t kChannelLimit = int64_t{1} << 16, kValueLimit = int64_t{1} << 33;
  int64_t values = shape[1];
  const bool overflows = __builtin_mul_overflow(values, shape[2], &values) || __builtin_mul_overflow(values, shape[3], &values);
  if (!overflows && shape[1] <= kChannelLimit && values <= kValueLimit) return;
  throw DataError("data",
                  cat("fields of a size that cannot be: path=", path.string(), ", shape=", join(shape, "x"),
                      ", most channels=", kChannelLimit, ", most values of one time=", kValueLimit),
                  "Look at the shape that the file says (welkin data inspect); copy a damaged file again");
}

FieldFacts read_facts(const ArrayFile& file, const ArrayFacts& fields, const TimeKeys& keys) {
  FieldFacts facts;
  const Extents& shape = fields.shape;
  facts.path = file.path;
  require_possible_fields(file.path, shape);
  facts.steps = shape[0], facts.channels = shape[1], facts.height = shape[2], facts.width = shape[3];
  const std::string object = file.has(kFields) ? kFields : "";
  facts.channel_names = checked_texts(file, "channels", find_channel_names(file, object, facts.channels), facts.channels);
  facts.units = units_of_channels(file, object, facts.channels);
  facts.roles = checked_texts(file, "roles", file.texts(object, "roles"), facts.channels);
  facts.mask_of = checked_texts(file, "mask_of", file.texts(object, "mask_of"), facts.channels);
  facts.missing = fields.missing;
  facts.has_holes = file.texts(object, "missing") == std::vector<std::string>{"hole"};
  if (const auto member = file.numbers("", "member"); member.size() == 1 && std::abs(member[0]) < 0x1p31) {
    facts.member = static_cast<int64_t>(member[0]);
  }
  add_places(file, facts);
  add_times(file, keys, facts);
  return facts;
}

// Kinds of files in a folder. Only files of the first kind that it has are taken: statistics and other small npy files may lie
// beside the data.
enum class FileKind { Hdf5, OtherFormat, Npy, None };

// A broken HDF5 file is not skipped: it is known by its name.
FileKind kind_of(const std::filesystem::directory_entry& entry) {
  const auto& path = entry.path();
  const std::string name = path.filename().string();
  if (name.starts_with('.')) return FileKind::None;
  if (path.extension() == ".h5" || path.extension() == ".hdf5") return FileKind::Hdf5;
  if (!entry.is_regular_file() && !entry.is_directory()) return FileKind::None;
  switch (array_format_of(path)) {
    case ArrayFormat::Unknown:
      return FileKind::None;
    case ArrayFormat::Hdf5:
      return FileKind::Hdf5;
    case ArrayFormat::Npy:
      break;
    default:
      return FileKind::OtherFormat;
  }
  constexpr std::array<std::string_view, 6> kStatistics{"global_means.npy", "global_stds.npy", "global_mins.npy",
                                                        "global_maxs.npy",  "time_means.npy",  "climatology.npy"};
  return std::ranges::count(kStatistics, name) > 0 ? FileKind::None : FileKind::Npy;
}

}  // namespace

FieldFile::FieldFile(const std::filesystem::path& path, std::shared_ptr<ChunkCache> cache, const TimeKeys& keys)
    : FieldFile(open_array_file(path, std::move(cache)), keys) {}

FieldFile::FieldFile(const ArrayFile& file, const TimeKeys& keys) {
  fields_ = ordered_fields(file.array(kFields));
  facts_ = read_facts(file, fields_->facts(), keys);
  mapped_ = fields_->mapped();
  if (mapped_ && mapped_->stride[3] != 1) mapped_.reset();
  if (!file.has(kStatic)) return;
  statics_ = file.array(kStatic);
  check_static(statics_->facts(), facts_);
  facts_.static_names = static_names(file, statics_->facts().shape[0]);
  static_units_ = checked_texts(file, "units", file.texts(kStatic, "units"), statics_->facts().shape[0]);
  static_units_.resize(facts_.static_names.size());
}

StaticFields FieldFile::statics() const {
  StaticFields statics{.names = facts_.static_names,
                       .units = static_units_,
                       .height = facts_.height,
                       .width = facts_.width,
                       .values = {},
                       .mean = {},
                       .std = {}};
  if (!statics_) return statics;
  statics.values.resize(static_cast<size_t>(statics_->facts().num_values()));
  statics_->read({{0, 0, 0}, statics_->facts().shape}, statics.values);
  statics.add_statistics(facts_.path.string());
  return statics;
}

void FieldFile::arrange_like(const FieldFacts& other) {
  if (facts_.channel_names.empty() || other.channel_names.empty()) return;
  std::vector<int64_t> places;
  std::vector<std::string> units = other.units;
  units.resize(other.channel_names.size());
  for (size_t c = 0; c < units.size(); ++c) {
    const auto found = std::ranges::find(facts_.channel_names, other.channel_names[c]);
    const bool is_here = found != facts_.channel_names.end();
    const auto place = static_cast<size_t>(found - facts_.channel_names.begin());
    places.push_back(is_here ? static_cast<int64_t>(place) : -1);
    if (is_here) units[c] = place < facts_.units.size() ? facts_.units[place] : "";
    absent_.push_back(!is_here);
  }
  fields_ = with_channels(fields_, places);
  mapped_ = fields_->mapped();
  if (mapped_ && mapped_->stride[3] != 1) mapped_.reset();
  facts_.channels = static_cast<int64_t>(places.size());
  facts_.channel_names = other.channel_names, facts_.units = std::move(units);
  facts_.roles = other.roles, facts_.mask_of = other.mask_of;
}

void FieldFile::hold() {
  check_fits_memory(static_cast<uint64_t>(fields_->facts().num_values()) * sizeof(float), facts_.path.string());
  fields_ = held(*fields_);
  mapped_.reset();
}

void FieldFile::read(int64_t step, const ChannelRun& channels, const FieldWindow& window, std::span<float> out,
                     const ChannelOp* ops) const {
  WELKIN_CHECK(step >= 0 && step < facts_.steps && channels.first + channels.count <= facts_.channels,
               "a step or channel outside the file");
  WELKIN_CHECK(window.row + window.height <= facts_.height && window.column + window.width <= facts_.width,
               "a window outside the field");
  if (ops == nullptr) {
    fields_->read({{step, channels.first, window.row, window.column},
                   {step + 1, channels.first + channels.count, window.row + window.height, window.column + window.width}},
                  out);
    return;
  }
  if (mapped_) return copy_mapped(step, channels, window, out, ops);
  const auto plane = static_cast<size_t>(window.height * window.width);
  const Extents& chunk = fields_->facts().chunk;
  if (!chunk.empty() && chunk[1] > 1) {  // several channels are decoded at once
    read(step, channels, window, out);
    for (int64_t c = 0; c < channels.count; ++c) {
      apply(ops[c], out.data() + static_cast<size_t>(c) * plane, static_cast<int64_t>(plane));
    }
    return;
  }
  for (int64_t c = 0; c < channels.count; ++c) {
    read_transformed(step, channels.first + c, window, out.subspan(static_cast<size_t>(c) * plane, plane), ops[c]);
  }
}

void FieldFile::read_channel(int64_t step, int64_t channel, const FieldWindow& window, std::span<float> out) const {
  fields_->read({{step, channel, window.row, window.column},
                 {step + 1, channel + 1, window.row + window.height, window.column + window.width}},
                out);
}

// One pass from the page cache into the batch, a row or, where rows lie one after the other, a plane at a time.
void FieldFile::copy_mapped(int64_t step, const ChannelRun& channels, const FieldWindow& window, std::span<float> out,
                            const ChannelOp* ops) const {
  const Extents& stride = mapped_->stride;
  const int64_t first = step * stride[0] + channels.first * stride[1] + window.row * stride[2] + window.column;
  const bool whole_rows = window.width == stride[2];
  const int64_t rows = whole_rows ? 1 : window.height, length = whole_rows ? window.height * window.width : window.width;
  mapped_->file->copy(mapped_->offset + static_cast<uint64_t>(first) * sizeof(float),
                      static_cast<uint64_t>(channels.count * rows * length) * sizeof(float), [&](const std::byte* file) {
                        const float* from = reinterpret_cast<const float*>(file + mapped_->offset) + first;
                        float* to = out.data();
                        for (int64_t c = 0; c < channels.count; ++c) {
                          for (int64_t row = 0; row < rows; ++row, to += length) {
                            copy_applied(ops[c], from + c * stride[1] + row * stride[2], to, length, mapped_->missing);
                          }
                        }
                      });
}

// A few rows at a time are read and transformed while they are in the second-level cache.
void FieldFile::read_transformed(int64_t step, int64_t channel, const FieldWindow& window, std::span<float> out,
                                 const ChannelOp& op) const {
  const bool by_rows = fields_->facts().chunk.empty();  // a chunk is decoded whole
  const int64_t rows = by_rows ? std::max<int64_t>(1, kBlockValues / window.width) : window.height;
  for (int64_t row = 0; row < window.height; row += rows) {
    const FieldWindow part{window.row + row, window.column, std::min(rows, window.height - row), window.width};
    const auto to = out.subspan(static_cast<size_t>(row * window.width), static_cast<size_t>(part.height * part.width));
    read_channel(step, channel, part, to);
    apply(op, to.data(), static_cast<int64_t>(to.size()));
  }
}

void need_times(const FieldFacts& facts, std::string_view purpose, std::string_view remedy) {
  if (!facts.time.empty()) return;
  if (!facts.time_without_units.empty()) refuse_times_without_units(facts.path.string(), facts.time_without_units, purpose);
  throw DataError("data", cat(purpose, " needs the time of every step: path=", facts.path.string(), ", dataset=time"),
                  cat("Make the file with welkin data ingest or simulate, or drop ", remedy));
}

std::vector<std::filesystem::path> list_field_files(const std::filesystem::path& folder) {
  std::error_code error;
  std::map<FileKind, std::vector<std::filesystem::path>> files;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) {
    throw DataError("data", cat("cannot list the folder: path=", folder.string(), ", reason=", error.message()),
                    "Check the path; train rebinds the prefix /data with --data_root");
  }
  for (const auto& entry : entries) {
    const FileKind kind = kind_of(entry);
    if (kind != FileKind::None) files[kind].push_back(entry.path());
  }
  if (files.empty()) {
    throw DataError("data", cat("no training files: path=", folder.string(), ", pattern=*.h5 or any known format"),
                    "Make some with welkin data simulate or welkin data ingest");
  }
  std::ranges::sort(files.begin()->second);
  return files.begin()->second;
}

}  // namespace welkin::data
