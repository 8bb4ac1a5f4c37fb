// SPDX-License-Identifier: Apache-2.0
// libFuzzer: what attributes and coordinates of a file mean: times, latitudes and longitudes, channel names, packing, variables
// of an archive. The input is a side document (data_sidecar_fuzz.cpp looks at its syntax), whose arrays of values are the file.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "data/cf/coordinates.h"
#include "data/cf/file_times.h"
#include "data/formats/sidecar.h"

namespace {

namespace data = welkin::data;

void look_at_places(const data::ArrayFile& file, data::CoordinateKind kind, const data::Extents& shape) {
  try {
    for (const double degrees : data::read_places(file, kind, shape).degrees) {
      if (!std::isfinite(degrees)) std::abort();
    }
  } catch (const welkin::DataError&) {  // the one legal way to refuse
  }
}

void look_at_times(const data::ArrayFile& file, int64_t length) {
  const std::string name = data::find_coordinate(file, data::CoordinateKind::Time, length);
  if (name.empty()) return;
  try {
    const data::FileTimes times = data::read_times(file, name);
    if (!times.seconds.empty() && times.seconds.size() != times.stored.size()) std::abort();
    data::check_time_order(times, "fuzz", name);
  } catch (const welkin::DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  data::ArrayFile file{.path = "fuzz", .format = "npy", .arrays = {}, .not_numbers = {}, .attributes = {}};
  try {
    data::add_sidecar(data::parse_sidecar({reinterpret_cast<const char*>(bytes), size}, "fuzz"), "fuzz", file);
  } catch (const welkin::DataError&) {
    return 0;
  }
  int64_t length = 1;
  for (const auto& [name, array] : file.arrays) length = array->facts().shape.empty() ? 1 : array->facts().shape[0];
  look_at_times(file, length);
  look_at_places(file, data::CoordinateKind::Latitude, {length, 1});
  look_at_places(file, data::CoordinateKind::Longitude, {1, length});
  for (const auto& [name, attributes] : file.attributes) (void)data::find_channel_names(file, name, length);
  return 0;
}
