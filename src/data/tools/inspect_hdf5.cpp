// SPDX-License-Identifier: Apache-2.0
#include "data/tools/inspect_hdf5.h"

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "core/printable.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data/cf/coordinates.h"
#include "data/formats/array_file.h"
#include "data/formats/formats.h"
#include "data/formats/hdf5/hdf5_file.h"

namespace welkin::data {
namespace {

constexpr int64_t kLargestSlab = int64_t{1} << 26;  // values

// The channel axis, and the axis along which a few slabs are sampled.
struct Axes {
  int64_t channel = -1;
  size_t slab = 0;
};

// The channel axis stands before rows and columns, or depth, and has as many places as there are names: samples, times and
// leads come first. Without names the tutorials' layouts decide.
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

void add_attribute_lines(const Hdf5File& file, const ArrayFile& arrays, const std::string& object, std::string& text) {
  for (const std::string& name : file.attribute_names(object)) {
    if (is_format_attribute(arrays, object, name)) continue;
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
bool sample_channel(const StoredArray& array, const Axes& axes, int64_t channel, int64_t budget, RunningMoments& moments) {
  const Extents& shape = array.facts().shape;
  ArrayRegion region = whole_region(shape);
  const auto narrow = [&](size_t axis, int64_t place) { region.begin[axis] = place, region.end[axis] = place + 1; };
  if (axes.channel >= 0) narrow(static_cast<size_t>(axes.channel), channel);
  if (!shape.empty()) narrow(axes.slab, 0);
  const int64_t slab = region.num_values();
  if (slab > kLargestSlab || slab == 0) return false;
  const int64_t length = shape.empty() ? 1 : shape[axes.slab];
  const int64_t count = std::clamp<int64_t>(budget / slab, 1, length);
  std::vector<float> values(static_cast<size_t>(slab));
  for (int64_t i = 0; i < count; ++i) {
    if (!shape.empty()) narrow(axes.slab, count == 1 ? 0 : (length - 1) * i / (count - 1));
    array.read(region, values);
    moments.add(values);
  }
  return true;
}

std::string channel_label(const std::vector<std::string>& names, int64_t channel) {
  const auto c = static_cast<size_t>(channel);
  return c < names.size() ? cat(channel, " ", printable(names[c])) : cat(channel);
}

void add_range_lines(const ArrayFile& arrays, const Hdf5Dataset& dataset, const InspectOptions& options, std::string& text) {
  if (!arrays.has(dataset.name) || dataset.stored_bytes == 0 || std::ranges::count(dataset.shape, 0) > 0) return;
  const std::vector<std::string> names = arrays.texts(dataset.name, "channels");
  const StoredArrayPtr array = arrays.array(dataset.name);
  const Axes axes = axes_of(dataset, names.size());
  const int64_t channels = axes.channel < 0 ? 1 : dataset.shape[static_cast<size_t>(axes.channel)];
  constexpr int64_t kMostChannels = 256;
  for (int64_t c = 0; c < std::min(channels, kMostChannels); ++c) {
    RunningMoments moments;
    const bool sampled = sample_channel(*array, axes, c, options.most_sampled_values / channels, moments);
    const std::string label = axes.channel < 0 ? "values" : cat("channel ", channel_label(names, c));
    text += cat("    ", label, ": ",
                sampled ? moments_text(moments, array->facts().missing) : "not sampled: one slab is too large", "\n");
  }
}

std::string axes_text(const ArrayFile& arrays, const std::string& name) {
  if (!arrays.has(name) || arrays.array(name)->facts().axes.empty()) return "";
  return cat("  axes ", printable(join(arrays.array(name)->facts().axes, ", ")));
}

void add_dataset(const Hdf5File& file, const ArrayFile& arrays, const std::string& name, const InspectOptions& options,
                 std::string& text) {
  const Hdf5Dataset dataset = file.dataset(name);
  text += cat("  ", printable(name), "  (", join(dataset.shape, ", "), ")  ", dataset.dtype, axes_text(arrays, name), "  ",
              layout_text(dataset), "\n");
  add_attribute_lines(file, arrays, name, text);
  const std::string lines = arrays.has(name) ? coordinate_lines(arrays, name) : text_line(arrays, name);
  if (!lines.empty()) {
    text += lines;
    return;
  }
  add_range_lines(arrays, dataset, options, text);
  if (arrays.has(name)) text += assumed_latitudes_line(arrays, name);
}

}  // namespace

std::string inspect_hdf5(const std::filesystem::path& path, const InspectOptions& options) {
  const auto opened = std::make_shared<const Hdf5File>(Hdf5File::open(path));
  const Hdf5File& file = *opened;
  const ArrayFile arrays = open_hdf5_arrays(opened, std::make_shared<ChunkCache>(kChunkCacheBytes));
  std::vector<std::string> names = file.dataset_names();
  std::erase_if(names, [&](const std::string& name) { return is_dimension_placeholder(arrays, name); });
  std::string text = cat("HDF5, ", format_bytes(std::filesystem::file_size(path)), ", ", names.size(), " data sets\n");
  add_attribute_lines(file, arrays, "/", text);
  const auto most = static_cast<size_t>(options.most_datasets);
  for (size_t i = 0; i < std::min(names.size(), most); ++i) add_dataset(file, arrays, names[i], options, text);
  if (names.size() > most) text += cat("  ... and ", names.size() - most, " more\n");
  size_t num_links = 0;
  for (const auto& [name, target] : file.external_links()) {
    if (++num_links > most) break;
    text += cat("  ", printable(name), "  not read: a link into another file, ", printable(target), "\n");
  }
  return text;
}

}  // namespace welkin::data
