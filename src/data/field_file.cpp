// SPDX-License-Identifier: Apache-2.0
#include "data/field_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr const char* kFields = "fields";
// From here on a system call per run is cheaper than the page faults of a mapping.
constexpr int64_t kLongRunBytes = 64 << 10;

void check_fields(const std::filesystem::path& path, const Hdf5Dataset& fields) {
  const std::string shape = cat("(", join(fields.shape, ", "), ")");
  if (!fields.is_number) {
    throw DataError("data", cat("fields hold no numbers: path=", path.string(), ", dataset=fields, dtype=", fields.dtype),
                    "Store them as float32");
  }
  if (fields.shape.size() != 4 || std::ranges::count(fields.shape, 0) > 0) {
    throw DataError("data", cat("fields of wrong shape: path=", path.string(), ", dataset=fields, shape=", shape),
                    "Store them as (time, channel, lat, lon)");
  }
}

std::vector<std::string> names_of_channels(const Hdf5File& file, std::string_view attribute, int64_t channels) {
  if (!file.has_attribute(kFields, attribute)) return {};
  std::vector<std::string> names = file.strings(kFields, attribute);
  if (static_cast<int64_t>(names.size()) == channels) return names;
  throw DataError("data",
                  cat("an attribute does not fit its data set: path=", file.path().string(), ", attribute=", attribute,
                      ", values=", names.size(), ", channels=", channels),
                  "Write one text per channel");
}

template <typename T>
std::vector<T> coordinate(const Hdf5File& file, const std::string& name, int64_t length) {
  if (!file.has_dataset(name)) return {};
  std::vector<T> values;
  if constexpr (std::is_same_v<T, double>) {
    values = file.read_doubles(name);
  } else {
    values = file.read_integers(name);
  }
  if (static_cast<int64_t>(values.size()) == length) return values;
  throw DataError("data",
                  cat("a coordinate does not fit the fields: path=", file.path().string(), ", dataset=", name,
                      ", values=", values.size(), ", expected=", length),
                  "Make the file again");
}

// A month may be 28 to 31 days long, a gap is at least twice the step.
void check_even_times(const std::filesystem::path& path, const std::vector<int64_t>& time) {
  if (time.size() < 3) return;
  int64_t shortest = time[1] - time[0];
  for (size_t i = 1; i + 1 < time.size(); ++i) shortest = std::min(shortest, time[i + 1] - time[i]);
  for (size_t i = 0; i + 1 < time.size(); ++i) {
    const int64_t step = time[i + 1] - time[i];
    if (shortest > 0 && step * 2 <= shortest * 3) continue;
    throw DataError("data",
                    cat("the times of a file are not evenly spaced: path=", path.string(), ", step=", i, ", seconds=", step,
                        ", shortest=", shortest),
                    "Make it with welkin data ingest, which splits at gaps");
  }
}

void check_coordinates(const FieldFacts& facts) {
  for (const std::vector<double>* values : {&facts.latitude, &facts.longitude}) {
    if (std::ranges::all_of(*values, [](double value) { return std::isfinite(value) && std::abs(value) <= 720.0; })) continue;
    throw DataError("data", cat("a latitude or longitude that is no angle: path=", facts.path.string()), "Make the file again");
  }
  check_even_times(facts.path, facts.time);
}

FieldFacts read_facts(const Hdf5File& file, const Hdf5Dataset& fields) {
  FieldFacts facts;
  facts.path = file.path();
  facts.steps = fields.shape[0], facts.channels = fields.shape[1], facts.height = fields.shape[2], facts.width = fields.shape[3];
  facts.channel_names = names_of_channels(file, "channels", facts.channels);
  facts.units = names_of_channels(file, "units", facts.channels);
  facts.latitude = coordinate<double>(file, "latitude", facts.height);
  facts.longitude = coordinate<double>(file, "longitude", facts.width);
  facts.time = coordinate<int64_t>(file, "time", facts.steps);
  if (!facts.time.empty() && file.has_attribute("time", "calendar")) {
    const auto calendar = file.strings("time", "calendar");
    if (!calendar.empty()) facts.calendar = calendar.front();
  }
  check_coordinates(facts);
  return facts;
}

}  // namespace

FieldFile::FieldFile(const std::filesystem::path& path) {
  auto file = std::make_unique<Hdf5File>(Hdf5File::open(path));
  const Hdf5Dataset fields = file->dataset(kFields);
  check_fields(path, fields);
  facts_ = read_facts(*file, fields);
  if (!fields.is_float32_le || !fields.offset || *fields.offset % sizeof(float) != 0) {
    hdf5_ = std::move(file);
    return;
  }
  bytes_ = std::make_unique<WatchedFile>(path);
  offset_ = *fields.offset;
  const uint64_t needed = offset_ + fields.stored_bytes;
  if (needed <= bytes_->size()) return;
  throw DataError("data",
                  cat("the file is truncated: path=", path.string(), ", bytes_needed=", needed, ", bytes_found=", bytes_->size()),
                  "Copy or make it again");
}

void FieldFile::read(int64_t step, int64_t num_channels, const FieldWindow& window, std::span<float> out) const {
  WELKIN_CHECK(step >= 0 && step < facts_.steps && num_channels <= facts_.channels, "a step or channel outside the file");
  WELKIN_CHECK(window.row + window.height <= facts_.height && window.column + window.width <= facts_.width,
               "a window outside the field");
  WELKIN_CHECK(static_cast<int64_t>(out.size()) == num_channels * window.height * window.width, "a view of the wrong size");
  if (bytes_) return read_contiguous(step, num_channels, window, out);
  hdf5_->read(kFields, {step, 0, window.row, window.column}, {1, num_channels, window.height, window.width}, out);
}

void FieldFile::read_contiguous(int64_t step, int64_t num_channels, const FieldWindow& window, std::span<float> out) const {
  const int64_t plane = facts_.height * facts_.width;
  const bool whole_rows = window.width == facts_.width;
  const bool whole_planes = whole_rows && window.height == facts_.height;
  const int64_t run = window.width * (whole_rows ? window.height : 1) * (whole_planes ? num_channels : 1);
  const int64_t num_runs = static_cast<int64_t>(out.size()) / run;
  const int64_t runs_per_plane = whole_rows ? 1 : window.height;
  const int64_t first = step * facts_.channels * plane + window.row * facts_.width + window.column;
  const auto place = [&](int64_t i) {
    return offset_ +
           sizeof(float) * static_cast<uint64_t>(first + i / runs_per_plane * plane + i % runs_per_plane * facts_.width);
  };
  const auto run_bytes = static_cast<size_t>(run) * sizeof(float);
  auto* to = reinterpret_cast<std::byte*>(out.data());
  if (static_cast<int64_t>(run_bytes) >= kLongRunBytes) {
    for (int64_t i = 0; i < num_runs; ++i) bytes_->read(place(i), {to + static_cast<size_t>(i) * run_bytes, run_bytes});
    return;
  }
  bytes_->copy([&](const std::byte* file) {
    for (int64_t i = 0; i < num_runs; ++i) std::memcpy(to + static_cast<size_t>(i) * run_bytes, file + place(i), run_bytes);
  });
}

std::vector<std::filesystem::path> list_field_files(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) {
    throw DataError("data", cat("cannot list the folder: path=", folder.string(), ", reason=", error.message()),
                    "Check the path, or rebind the prefix /data with --data_root");
  }
  for (const auto& entry : entries) {
    if (entry.path().extension() == ".h5") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  if (!files.empty()) return files;
  throw DataError("data", cat("no training files: path=", folder.string(), ", pattern=*.h5"),
                  "Make some with welkin data simulate or welkin data ingest");
}

}  // namespace welkin::data
