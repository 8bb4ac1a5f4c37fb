// SPDX-License-Identifier: Apache-2.0
#include "data/tools/convert_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "data/cf/coordinates.h"
#include "data/cf/file_times.h"
#include "data/formats/array_file.h"
#include "data/storage/axis_names.h"
#include "data/tools/convert_cuts.h"

namespace welkin::data {
namespace {

constexpr int64_t kMostSmallValues = 1 << 20;
constexpr int kPackedLimit = 32767;
constexpr double kPackedMissing = -32768;

// Attributes that say how the input's values were packed or laid out: the output has its own.
const std::vector<std::string>& layout_attributes() {
  static const std::vector<std::string> names{
      "scale_factor", "add_offset", "scale_axis",     "_Unsigned",     "_FillValue",        "missing_value",
      "valid_range",  "valid_min",  "valid_max",      "axes",          "_ARRAY_DIMENSIONS", "DIMENSION_LIST",
      "CLASS",        "NAME",       "REFERENCE_LIST", "_Netcdf4Dimid", "DIMENSION_LABELS",  "_Netcdf4Coordinates"};
  return names;
}

Attributes kept_attributes(const ArrayFile& file, const std::string& name) {
  const auto found = file.attributes.find(name);
  if (found == file.attributes.end()) return {};
  Attributes kept = found->second;
  for (const std::string& layout : layout_attributes()) kept.erase(layout);
  return kept;
}

// Facts that the output would lose: names of channels that stand in an array of texts, times of a sidecar.
void add_known_attributes(const ArrayFile& file, const ArrayFacts& facts, Attributes& attributes) {
  const auto channel = channel_axis(facts);
  if (facts.shape.size() == 4 && channel && !attributes.contains("channels")) {
    const auto names = find_channel_names(file, facts.name, facts.shape[*channel]);
    if (!names.empty()) attributes["channels"] = names;
  }
  if (facts.name == "time" && !attributes.contains("units") && has_our_times(file)) {
    attributes["units"] = std::vector<std::string>{std::string(kOurTimeUnits)};
  }
}

bool is_small(const ArrayFacts& facts) { return facts.shape.size() == 1 && facts.shape[0] <= kMostSmallValues; }

bool is_float_type(Dtype dtype) {
  return dtype == Dtype::F64 || dtype == Dtype::F32 || dtype == Dtype::F16 || dtype == Dtype::BF16;
}

// Values that are scaled, or become NaN, are floats; coordinates keep all digits.
Dtype kept_dtype(const ArrayFacts& facts) {
  if (!facts.packing || (is_float_type(facts.dtype) && !facts.packing->is_scaled())) return facts.dtype;
  const bool wide = is_small(facts) || (!facts.packing->is_scaled() && dtype_bytes(facts.dtype) > 2);
  return wide ? Dtype::F64 : Dtype::F32;
}

// Values that the input declares missing are read as NaN: an output of floats declares that one.
bool is_declared_missing(const ArrayFacts& facts, Dtype dtype) {
  return is_float_type(dtype) && facts.missing == Missing::Declared;
}

// The channel axis of a box without names of axes, where there is no doubt: by its names of channels, or since its edges are
// equal.
std::optional<size_t> known_box_channels(const ArrayFile& file, const ArrayFacts& facts) {
  const Extents& n = facts.shape;
  const auto names = static_cast<int64_t>(file.texts(facts.name, "channels").size());
  bool is_first = names == n[0], is_last = names == n[3];
  if (is_first == is_last) is_first = n[1] == n[2] && n[2] == n[3], is_last = n[0] == n[1] && n[1] == n[2];
  return is_first == is_last ? std::nullopt : std::optional<size_t>(is_first ? 0 : 3);
}

// Two boxes of a file may have different numbers of channels: each has a name of its own for that axis.
std::vector<std::string> box_axes(const ArrayFile& file, const ArrayFacts& facts) {
  const auto channels = known_box_channels(file, facts);
  if (!channels) return {};
  std::vector<std::string> axes{"depth", "height", "width"};
  const std::string name = facts.name.substr(facts.name.rfind('/') + 1);
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(*channels), name.empty() ? "channel" : cat(name, "_channel"));
  return axes;
}

// Zarr and HDF5: xarray opens a store only where all axes have names. A coordinate is its own axis; those of fields, static
// planes and boxes are known.
std::vector<std::string> axis_names(const ArrayFile& file, const ArrayFacts& facts, OutputFormat format) {
  const size_t rank = facts.shape.size();
  if (!facts.axes.empty()) return facts.axes;
  if (rank == 1 && !facts.name.empty()) return {facts.name.substr(facts.name.rfind('/') + 1)};  // without its group
  const bool is_fields = facts.name == "fields" && rank == 4, is_static = facts.name == "static" && rank == 3;
  if (!is_chunked(format)) return {};
  if (is_box(file, facts)) return box_axes(file, facts);
  if (!is_fields && !is_static) return {};
  const auto place = [&](CoordinateKind kind, int64_t length, const char* usual) {
    const std::string name = find_coordinate(file, kind, length);
    const bool is_known = name == "latitude" || name == "lat" || name == "longitude" || name == "lon";
    return is_known ? name : std::string(usual);
  };
  std::vector<std::string> axes{is_fields ? "time" : "static_channel"};
  if (is_fields) axes.emplace_back("channel");
  axes.push_back(place(CoordinateKind::Latitude, facts.shape[rank - 2], "lat"));
  axes.push_back(place(CoordinateKind::Longitude, facts.shape[rank - 1], "lon"));
  return axes;
}

std::vector<std::string> wanted_names(const ArrayFile& file, const ConvertOptions& options) {
  std::vector<std::string> names = options.arrays;
  if (names.empty()) {
    for (const auto& [name, array] : file.arrays) {
      if (!is_dimension_placeholder(file, name)) names.push_back(name);
    }
  }
  if (names.empty())
    throw DataError("data", cat("a file without arrays: path=", file.path.string()), "Check that the right file is named");
  return names;
}

// Smallest and largest value of each channel, in one pass.
struct Range {
  double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();
  int64_t num_missing = 0;

  void add(double value) {
    if (std::isnan(value)) {
      ++num_missing;
      return;
    }
    min = std::min(min, value);
    max = std::max(max, value);
  }
};

std::vector<Range> channel_ranges(const Conversion& conversion, std::optional<size_t> axis, uint64_t block_bytes) {
  const Extents extent = conversion.region.extent();
  std::vector<Range> ranges(axis ? static_cast<size_t>(extent[*axis]) : 1);
  for (const ArrayRegion& block : blocks_of(extent, {}, block_bytes / sizeof(double))) {
    ArrayRegion part = block;
    for (size_t d = 0; d < part.begin.size(); ++d)
      part.begin[d] += conversion.region.begin[d], part.end[d] += conversion.region.begin[d];
    std::vector<double> values(static_cast<size_t>(part.num_values()));
    conversion.from->read(part, values);
    if (!axis) {
      for (const double value : values) ranges[0].add(value);
      continue;
    }
    int64_t run = 1;
    for (size_t d = *axis + 1; d < extent.size(); ++d) run *= block.end[d] - block.begin[d];
    const int64_t channels = block.end[*axis] - block.begin[*axis];
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t channel = block.begin[*axis] + static_cast<int64_t>(i) / run % channels;
      ranges[static_cast<size_t>(channel)].add(values[i]);
    }
  }
  return ranges;
}

// Values between min and max become -32767 ... 32767: rounding loses at most half a step, and one rounding
// to float32 when reading.
Packing make_packing(const Conversion& conversion, const std::string& name, uint64_t block_bytes, ConvertReport& report) {
  const ArrayFacts& facts = conversion.from->facts();
  const auto axis = channel_axis(facts);
  Packing packing{.scale = {}, .offset = {}, .axis = axis.value_or(0), .missing = {kPackedMissing}};
  const auto ranges = channel_ranges(conversion, axis, block_bytes);
  for (size_t c = 0; c < ranges.size(); ++c) {
    const Range& range = ranges[c];
    if (std::isinf(range.min) != std::isinf(range.max) || (std::isinf(range.max) && range.max > 0)) {
      throw DataError("data", cat("infinite values cannot be packed: path=", facts.source, ", channel=", c),
                      "Choose --dtype float32");
    }
    const bool any = range.min <= range.max;
    const double middle = any ? range.min + (range.max - range.min) / 2 : 0, width = any ? range.max - range.min : 0;
    const double scale = width > 0 ? width / (2 * kPackedLimit) : 1;
    packing.scale.push_back(scale);
    packing.offset.push_back(middle);
    const double largest = any ? std::max(std::abs(range.min), std::abs(range.max)) : 0;
    report.packings.push_back(
        {name, static_cast<int64_t>(c), scale, middle, (width > 0 ? scale / 2 : 0) + largest * 0x1p-24, range.num_missing});
  }
  return packing;
}

void add_packing_attributes(const Packing& packing, Attributes& attributes) {
  attributes["scale_factor"] = packing.scale;
  attributes["add_offset"] = packing.offset;
  if (packing.scale.size() > 1) attributes["scale_axis"] = std::vector<double>{static_cast<double>(packing.axis)};
  attributes["_FillValue"] = packing.missing;
}

void check_fits(const ConvertPlan& plan, const ConvertOptions& options, const ArrayFile& file) {
  const auto refuse = [&](std::string_view why, std::string_view remedy) {
    throw DataError("data", cat("the format cannot hold this: path=", file.path.string(), ", reason=", why), remedy);
  };
  if (plan.output.arrays.empty() && !is_chunked(options.format))
    refuse("it holds arrays of one axis only", "Choose --format hdf5, zarr2 or zarr3");
  if (options.format == OutputFormat::Npy && plan.output.arrays.size() != 1) {
    refuse(cat("npy holds one array, there are ", plan.output.arrays.size()), "Choose one with --array NAME");
  }
  for (const OutputArray& array : plan.output.arrays) {
    const bool samples = options.format == OutputFormat::Tar || options.format == OutputFormat::Lmdb;
    if (samples && array.shape.empty()) refuse("a scalar has no samples", "Leave it out with --array");
    if (std::ranges::count(array.shape, 0) > 0) refuse(cat("the array ", array.name, " is empty"), "Leave it out with --array");
  }
}

}  // namespace

std::optional<size_t> channel_axis(const ArrayFacts& facts) {
  for (size_t d = 0; d < facts.axes.size(); ++d) {
    if (is_channel_axis(facts.axes[d])) return d;
  }
  if (facts.shape.size() != 4 || !facts.axes.empty()) return std::nullopt;
  const bool is_box = facts.shape[1] == facts.shape[2] && facts.shape[2] == facts.shape[3];
  const bool is_last = facts.shape[0] == facts.shape[1] && facts.shape[1] == facts.shape[2] && !is_box;
  return is_box ? 0 : is_last ? 3 : 1;
}

bool is_box(const ArrayFile& file, const ArrayFacts& facts) {
  const auto found = file.attributes.find(facts.name);
  const bool is_periodic = found != file.attributes.end() && found->second.contains("periodic");
  const bool is_named = facts.axes.empty() ||
                        std::ranges::any_of(facts.axes, [](const std::string& name) { return is_axis(AxisKind::Depth, name); });
  return facts.shape.size() == 4 && is_named && (is_periodic || facts.name == "Nbody" || facts.name == "Hydro");
}

ConvertPlan plan_conversion(const ArrayFile& file, const ConvertOptions& options, ConvertReport& report) {
  ConvertPlan plan;
  plan.output.attributes = kept_attributes(file, "");
  const std::vector<std::string> names = wanted_names(file, options);
  const RegionCuts cuts(file, options, names, report);
  for (const std::string& name : names) {
    const StoredArrayPtr from = file.array(name);
    const ArrayFacts& facts = from->facts();
    OutputArray array{.name = facts.name, .shape = {}, .chunk = {}, .codecs = {}, .axes = {}, .attributes = {}};
    array.axes = axis_names(file, facts, options.format);
    array.attributes = kept_attributes(file, facts.name);
    array.dtype = kept_dtype(facts);
    add_known_attributes(file, facts, array.attributes);
    cuts.cut_attributes(facts, array.attributes);
    if (facts.name.empty()) cuts.cut_attributes(facts, plan.output.attributes);
    Conversion conversion{from, cuts.region_of(facts), {}};
    array.shape = conversion.region.extent();
    if (is_small(facts)) {
      std::vector<double> values(static_cast<size_t>(conversion.region.num_values()));
      from->read(conversion.region, values);
      array.nan_is_missing =
          is_declared_missing(facts, array.dtype) && std::ranges::any_of(values, [](double value) { return std::isnan(value); });
      plan.output.small.emplace_back(std::move(array), std::move(values));
      continue;
    }
    if (array.name.empty() && is_chunked(options.format)) array.name = facts.shape.size() == 4 ? "fields" : "data";
    if (options.packed) {
      conversion.packing = make_packing(conversion, array.name, options.block_bytes, report);
      add_packing_attributes(*conversion.packing, array.attributes);
      array.dtype = Dtype::I16;
    } else if (options.dtype) {
      array.dtype = *options.dtype;
    }
    array.nan_is_missing = !options.packed && is_declared_missing(facts, array.dtype);
    plan.output.arrays.push_back(std::move(array));
    plan.conversions.push_back(std::move(conversion));
  }
  check_fits(plan, options, file);
  return plan;
}

bool is_chunked(OutputFormat format) {
  return format == OutputFormat::Hdf5 || format == OutputFormat::Zarr2 || format == OutputFormat::Zarr3;
}

}  // namespace welkin::data
