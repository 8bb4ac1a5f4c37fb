// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/output.h"

#include <limits>

namespace welkin::data::ingest {

FieldOutput::FieldOutput(const std::filesystem::path& path, const FieldHeader& header, int32_t member, int64_t num_times)
    : file_(Hdf5File::create(path)),
      num_channels_(static_cast<int64_t>(header.channels.size())),
      height_(static_cast<int64_t>(header.latitude.size())),
      width_(static_cast<int64_t>(header.longitude.size())) {
  file_.create_dataset("fields", {.type = Hdf5Type::Float32, .shape = {num_times, num_channels_, height_, width_}, .chunk = {}});
  file_.set_strings("fields", "channels", header.channels);
  file_.set_strings("fields", "units", header.units);
  if (!header.roles.empty()) file_.set_strings("fields", "roles", header.roles);
  if (!header.mask_of.empty()) file_.set_strings("fields", "mask_of", header.mask_of);
  if (header.has_holes) {
    file_.set_string("fields", "missing", "hole");
    file_.set_number("fields", "_FillValue", std::numeric_limits<double>::quiet_NaN());
  }
  write_static(header.statics);
  file_.create_dataset("latitude", {.type = Hdf5Type::Float64, .shape = {height_}, .chunk = {}});
  file_.write("latitude", {0}, {height_}, std::span<const double>(header.latitude));
  file_.create_dataset("longitude", {.type = Hdf5Type::Float64, .shape = {width_}, .chunk = {}});
  file_.write("longitude", {0}, {width_}, std::span<const double>(header.longitude));
  file_.create_dataset("time", {.type = Hdf5Type::Int64, .shape = {num_times}, .chunk = {}});
  file_.set_string("time", "calendar", name_of(header.calendar));
  file_.set_string("time", "units", "seconds since 1970-01-01T00:00:00");
  file_.set_string("time", "step", header.step);
  file_.set_integer("/", "member", member);
  file_.set_string("/", "provenance", header.provenance);
  if (!header.licence.empty()) file_.set_string("/", "licence", header.licence);
}

void FieldOutput::write_static(const StaticPlanes& statics) {
  const auto count = static_cast<int64_t>(statics.channels.size());
  if (count == 0) return;
  file_.create_dataset("static", {.type = Hdf5Type::Float32, .shape = {count, height_, width_}, .chunk = {}});
  file_.set_strings("static", "channels", statics.channels);
  file_.set_strings("static", "units", statics.units);
  file_.write("static", {0, 0, 0}, {count, height_, width_}, std::span<const float>(statics.values));
}

void FieldOutput::append(int64_t seconds, std::span<const float> values) {
  const auto place = static_cast<int64_t>(times_.size());
  file_.write("fields", {place, 0, 0, 0}, {1, num_channels_, height_, width_}, values);
  times_.push_back(seconds);
}

void FieldOutput::close() {
  file_.write("time", {0}, {static_cast<int64_t>(times_.size())}, std::span<const int64_t>(times_));
  file_.close();
}

}  // namespace welkin::data::ingest
