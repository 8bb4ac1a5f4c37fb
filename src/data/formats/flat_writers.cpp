// SPDX-License-Identifier: Apache-2.0
// npy and raw files: values one after the other.
#include <fcntl.h>
#include <unistd.h>

#include <limits>

#include "core/checked.h"
#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/text.h"
#include "data/formats/array_writer.h"
#include "data/formats/npy_file.h"

namespace welkin::data {
namespace {

constexpr uint64_t kRawAlignment = 4096;

std::string_view text_of_bytes(StoredBlock bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

class FlatWriter : public ArrayWriter {
 public:
  FlatWriter(const std::filesystem::path& path, std::string_view head, std::vector<uint64_t> offsets)
      : path_(path), file_(open_file(path, O_WRONLY | O_CREAT | O_TRUNC)), offsets_(std::move(offsets)), place_(head.size()) {
    write_fully(file_, path_, head);
  }

  void write(size_t array, const ArrayRegion&, StoredBlock values) override {
    if (place_ < offsets_[array]) {
      write_fully(file_, path_, std::string(offsets_[array] - place_, '\0'));
      place_ = offsets_[array];
    }
    write_fully(file_, path_, text_of_bytes(values));
    place_ += values.size();
  }

  void finish() override { sync_file(file_, path_); }

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  std::vector<uint64_t> offsets_;
  uint64_t place_;
};

}  // namespace

AttributeValue text_attribute(std::string text) { return std::vector<std::string>{std::move(text)}; }

namespace {

Attributes place_attributes(const char* name, const char* unit, const char* axis) {
  return {{"standard_name", text_attribute(name)},
          {"long_name", text_attribute(name)},
          {"units", text_attribute(unit)},
          {"axis", text_attribute(axis)}};
}

}  // namespace

Attributes latitude_attributes() { return place_attributes("latitude", "degrees_north", "Y"); }
Attributes longitude_attributes() { return place_attributes("longitude", "degrees_east", "X"); }

void add_coordinate(OutputFile& output, const std::string& name, std::vector<double> values, Attributes attributes, Dtype dtype) {
  const auto length = static_cast<int64_t>(values.size());
  OutputArray array{.name = name,
                    .shape = {length},
                    .chunk = {length},
                    .dtype = dtype,
                    .codecs = {},
                    .axes = {name},
                    .attributes = std::move(attributes)};
  output.small.emplace_back(std::move(array), std::move(values));
}

uint64_t stored_bytes(const OutputArray& array) {
  const auto too_big = [&] {
    throw DataError("data", cat("an array that no machine can hold: dataset=", array.name), "Check the file");
  };
  return static_cast<uint64_t>(
      checked_mul(checked_product(array.shape, too_big), static_cast<int64_t>(dtype_bytes(array.dtype)), too_big));
}

std::vector<uint64_t> raw_offsets(const OutputFile& output) {
  std::vector<uint64_t> offsets;
  uint64_t place = 0;
  for (const OutputArray& array : output.arrays) {
    offsets.push_back(place);
    place = (place + stored_bytes(array) + kRawAlignment - 1) / kRawAlignment * kRawAlignment;
  }
  return offsets;
}

namespace {

Attributes sidecar_attributes(const OutputArray& array) {
  Attributes attributes = array.attributes;
  if (array.nan_is_missing) attributes["_FillValue"] = std::vector<double>{std::numeric_limits<double>::quiet_NaN()};
  return attributes;
}

}  // namespace

Sidecar sidecar_of(const OutputFile& output) {
  Sidecar document;
  document.attributes = output.attributes;
  for (const OutputArray& array : output.arrays) {
    SidecarArray& side = document.arrays[array.name];
    side.attributes = sidecar_attributes(array);
    side.axes = array.axes;
  }
  for (const auto& [array, values] : output.small) {
    SidecarArray& side = document.arrays[array.name];
    side.attributes = sidecar_attributes(array);
    side.values = values;
  }
  return document;
}

std::unique_ptr<ArrayWriter> make_npy_writer(const std::filesystem::path& path, const OutputFile& output) {
  const OutputArray& array = output.arrays.at(0);
  const std::string head = npy_header_of(array.shape, array.dtype);
  return std::make_unique<FlatWriter>(path, head, std::vector<uint64_t>{head.size()});
}

std::unique_ptr<ArrayWriter> make_raw_writer(const std::filesystem::path& path, const OutputFile& output) {
  return std::make_unique<FlatWriter>(path, "", raw_offsets(output));
}

}  // namespace welkin::data
