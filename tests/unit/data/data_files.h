// SPDX-License-Identifier: Apache-2.0
// For the tests of this folder: the shared golden numbers, a temporary folder, and small training files.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/archive/safetensors.h"
#include "data/formats/hdf5/hdf5_file.h"

namespace welkin::data::tests {

inline std::filesystem::path shared_folder() {
  if (const char* path = std::getenv("WELKIN_SHARED")) return path;
  const char* source = std::getenv("WELKIN_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / ".." / "shared";
}

inline std::filesystem::path golden_folder(const std::string& name) { return shared_folder() / "goldens" / name; }

inline nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

inline std::vector<float> golden_floats(const SafetensorsFile& file, const std::string& name) {
  const auto bytes = file.bytes(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class DataFolder {
 public:
  DataFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "welkin_data_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~DataFolder() { std::filesystem::remove_all(path_); }
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// 0, 1, 2, ...
inline std::vector<float> counting(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

struct FieldFileSpec {
  int64_t steps = 6, channels = 2, height = 4, width = 6;
  float first = 0;                   // value (t, c, h, w) = first + flat index
  bool chunked = false;              // with deflate; else contiguous
  std::vector<std::string> names{};  // attribute `channels`
  std::vector<int64_t> time{};       // seconds; empty = no data set
  Hdf5Type type = Hdf5Type::Float32;
  std::string time_units = "seconds since 1970-01-01";  // empty = none
};

inline void write_field_file(const std::filesystem::path& path, const FieldFileSpec& spec) {
  Hdf5File file = Hdf5File::create(path);
  const Extents shape{spec.steps, spec.channels, spec.height, spec.width};
  Hdf5Create options{.type = spec.type, .shape = shape, .chunk = {}};
  if (spec.chunked) options.chunk = {1, 1, spec.height, spec.width}, options.deflate = 1;
  file.create_dataset("fields", options);
  std::vector<float> values = counting(spec.steps * spec.channels * spec.height * spec.width);
  for (float& value : values) value += spec.first;
  file.write("fields", {0, 0, 0, 0}, shape, std::span<const float>(values));
  if (!spec.names.empty()) file.set_strings("fields", "channels", spec.names);
  if (!spec.time.empty()) {
    file.create_dataset("time", {.type = Hdf5Type::Int64, .shape = {spec.steps}, .chunk = {}});
    file.write("time", {0}, {spec.steps}, std::span<const int64_t>(spec.time));
    if (!spec.time_units.empty()) file.set_string("time", "units", spec.time_units);
  }
  file.close();
}

inline void write_box_file(const std::filesystem::path& path, int64_t edge, int64_t in_channels = 4, int64_t out_channels = 5) {
  Hdf5File file = Hdf5File::create(path);
  for (const auto& [name, channels] : std::map<std::string, int64_t>{{"Nbody", in_channels}, {"Hydro", out_channels}}) {
    const Extents shape{channels, edge, edge, edge};
    file.create_dataset(name, {.shape = shape, .chunk = {}});
    file.write(name, {0, 0, 0, 0}, shape, std::span<const float>(counting(channels * edge * edge * edge)));
  }
  file.close();
}

}  // namespace welkin::data::tests

// Ends the test with a written reason where a machine has not the shared golden numbers.
#define WELKIN_NEED_GOLDEN(name)                                                          \
  if (!std::filesystem::exists(::welkin::data::tests::golden_folder(name) / "meta.json")) \
  GTEST_SKIP() << "no golden numbers at " << ::welkin::data::tests::golden_folder(name) << "; set WELKIN_SHARED"
