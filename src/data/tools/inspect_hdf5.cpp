// SPDX-License-Identifier: Apache-2.0
#include "data/tools/inspect_hdf5.h"

#include <algorithm>

#include "core/checked.h"
#include "core/error.h"
#include "core/host.h"
#include "core/printable.h"
#include "core/text.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/sample/calendar.h"

namespace welkin::data {
namespace {

constexpr int64_t kLargestSlab = int64_t{1} << 26;  // values

// Which axis is the channel, and along which one a few slabs are sampled.
struct Axes {
  int64_t channel = -1;
  size_t slab = 0;
};

// The channel is the axis before rows and columns, or depth, that has as many places as there are names: samples, times and leads
// come first. Without names the tutorials' layouts decide.
Axes axes_of(const Hdf5Dataset& dataset, size_t num_names) {
  const size_t dims = dataset.shape.size();
  if (dims < 4 || (dims > 4 && num_names == 0)) return {};
  int64_t channel = dims > 4 ? -1 : dataset.name == "fields" ? 1 : 0;
  for (size_t axis = 0; num_names > 0 && axis + 2 < dims; ++axis) {
    if (dataset.shape[axis] == static_cast<int64_t>(num_names)) channel = static_cast<int64_t>(axis);
  }
  return {.channel = channel, .slab = channel == 0 ? size_t{1} : size_t{0}};
}

std::string layout_text(const Hdf5Dataset& dataset) {
  std::string text = dataset.chunk.empty() ? "contiguous" : cat("chunks (", join(dataset.chunk, ", "), ")");
  if (!dataset.filters.empty()) text += cat(" ", join(dataset.filters, "+"));
  return cat(text, ", ", format_bytes(dataset.stored_bytes));
}

std::string attribute_text(const Hdf5File& file, const std::string& object, const std::string& name) {
  if (file.is_string_attribute(object, name)) return printable(join(file.strings(object, name), ", "));
  return printable(join(file.numbers(object, name), ", "));
}

void add_attribute_lines(const Hdf5File& file, const std::string& object, std::string& text) {
  for (const std::string& name : file.attribute_names(object)) {
    std::string value;
    try {
      value = attribute_text(file, object, name);
    } catch (const DataError&) {
      value = "(of a type that is neither text nor number)";
    }
    text += cat("    ", printable(name), " = ", value, "\n");
  }
}

// Evenly spaced slabs of one channel (or of all, without a channel axis). False: a slab is too large to sample.
bool sample_channel(const Hdf5File& file, const Hdf5Dataset& dataset, const Axes& axes, int64_t channel, int64_t budget,
                    RunningMoments& moments) {
  Extents begin(dataset.shape.size(), 0), extent = dataset.shape;
  if (axes.channel >= 0) {
    begin[static_cast<size_t>(axes.channel)] = channel;
    extent[static_cast<size_t>(axes.channel)] = 1;
  }
  if (!extent.empty()) extent[axes.slab] = 1;
  const int64_t slab =
      checked_product(extent, [] { throw DataError("data", "a data set of impossible size", "Check the file"); });
  if (slab > kLargestSlab || slab == 0) return false;
  const int64_t length = dataset.shape.empty() ? 1 : dataset.shape[axes.slab];
  const int64_t count = std::clamp<int64_t>(budget / slab, 1, length);
  std::vector<float> values(static_cast<size_t>(slab));
  for (int64_t i = 0; i < count; ++i) {
    if (!begin.empty()) begin[axes.slab] = count == 1 ? 0 : (length - 1) * i / (count - 1);
    file.read(dataset.name, begin, extent, std::span<float>(values));
    moments.add(values);
  }
  return true;
}

std::string channel_label(const std::vector<std::string>& names, int64_t channel) {
  const auto c = static_cast<size_t>(channel);
  return c < names.size() ? cat(channel, " ", printable(names[c])) : cat(channel);
}

void add_range_lines(const Hdf5File& file, const Hdf5Dataset& dataset, const InspectOptions& options, std::string& text) {
  if (!dataset.is_number || dataset.stored_bytes == 0 || std::ranges::count(dataset.shape, 0) > 0) return;
  std::vector<std::string> names;
  if (file.has_attribute(dataset.name, "channels")) names = file.strings(dataset.name, "channels");
  const Axes axes = axes_of(dataset, names.size());
  const int64_t channels = axes.channel < 0 ? 1 : dataset.shape[static_cast<size_t>(axes.channel)];
  constexpr int64_t kMostChannels = 256;
  for (int64_t c = 0; c < std::min(channels, kMostChannels); ++c) {
    RunningMoments moments;
    const bool sampled = sample_channel(file, dataset, axes, c, options.most_sampled_values / channels, moments);
    const std::string label = axes.channel < 0 ? "values" : cat("channel ", channel_label(names, c));
    text += cat("    ", label, ": ", sampled ? moments_text(moments) : "not sampled: one slab is too large", "\n");
  }
}

void add_time_lines(const Hdf5File& file, std::string& text) {
  const std::vector<int64_t> time = file.read_integers("time");
  if (time.empty()) return;
  const auto names = file.has_attribute("time", "calendar") ? file.strings("time", "calendar") : std::vector<std::string>{};
  const Calendar calendar = names.empty() ? Calendar::ProlepticGregorian : parse_calendar(names.front());
  text += cat("    from ", format_date(calendar, time.front()), " to ", format_date(calendar, time.back()));
  if (time.size() > 1) text += cat(", first step ", time[1] - time[0], " s");
  text += "\n";
}

void add_coordinate_lines(const Hdf5File& file, const Hdf5Dataset& dataset, std::string& text) {
  const std::vector<double> values = file.read_doubles(dataset.name);
  if (!values.empty()) text += cat("    from ", values.front(), " to ", values.back(), "\n");
}

void add_dataset(const Hdf5File& file, const std::string& name, const InspectOptions& options, std::string& text) {
  const Hdf5Dataset dataset = file.dataset(name);
  text += cat("  ", printable(name), "  (", join(dataset.shape, ", "), ")  ", dataset.dtype, "  ", layout_text(dataset), "\n");
  add_attribute_lines(file, name, text);
  const bool is_axis = dataset.is_number && dataset.shape.size() == 1;
  if (is_axis && name == "time") return add_time_lines(file, text);
  if (is_axis && (name == "latitude" || name == "longitude")) return add_coordinate_lines(file, dataset, text);
  add_range_lines(file, dataset, options, text);
}

}  // namespace

std::string inspect_hdf5(const std::filesystem::path& path, const InspectOptions& options) {
  const Hdf5File file = Hdf5File::open(path);
  const std::vector<std::string> names = file.dataset_names();
  std::string text = cat("HDF5, ", format_bytes(std::filesystem::file_size(path)), ", ", names.size(), " data sets\n");
  add_attribute_lines(file, "/", text);
  const auto most = static_cast<size_t>(options.most_datasets);
  for (size_t i = 0; i < std::min(names.size(), most); ++i) add_dataset(file, names[i], options, text);
  if (names.size() > most) text += cat("  ... and ", names.size() - most, " more\n");
  size_t num_links = 0;
  for (const auto& [name, target] : file.external_links()) {
    if (++num_links > most) break;
    text += cat("  ", printable(name), "  not read: a link into another file, ", printable(target), "\n");
  }
  return text;
}

}  // namespace welkin::data
