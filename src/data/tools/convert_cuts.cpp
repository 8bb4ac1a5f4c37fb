// SPDX-License-Identifier: Apache-2.0
#include "data/tools/convert_cuts.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "data/cf/coordinates.h"
#include "data/storage/axis_names.h"
#include "data/tools/convert_plan.h"

namespace welkin::data {
namespace {

constexpr std::string_view kTimeAxis = common_name(AxisKind::Time), kChannelAxis = common_name(AxisKind::Channel),
                           kRowAxis = common_name(AxisKind::Latitude), kColumnAxis = common_name(AxisKind::Longitude);

// Our own name stands for all of one meaning.
std::string unified_name(const std::string& name) {
  for (const AxisKind kind : {AxisKind::Time, AxisKind::Channel, AxisKind::Latitude, AxisKind::Longitude}) {
    if (is_axis(kind, name)) return std::string(common_name(kind));
  }
  return name;
}

size_t num_entries(const AttributeValue& value) {
  return std::visit([](const auto& entries) { return entries.size(); }, value);
}

bool is_whole(const ArrayRegion& region, const ArrayFacts& facts, size_t axis) {
  return region.begin[axis] == 0 && region.end[axis] == facts.shape[axis];
}

// One flag per axis in space, or one for all.
void clear_periodic(AttributeValue& value, const ArrayRegion& region, const ArrayFacts& facts, size_t channels) {
  std::visit(
      [&](auto& flags) {
        using Flag = typename std::remove_reference_t<decltype(flags)>::value_type;
        const size_t num_axes = facts.shape.size() - 1;
        if (flags.size() == 1) flags.resize(num_axes, flags.front());
        if (flags.size() != num_axes) return;
        for (size_t d = 0, flag = 0; d < facts.shape.size(); ++d) {
          if (d == channels) continue;
          if (!is_whole(region, facts, d)) {
            if constexpr (std::is_same_v<Flag, std::string>) {
              flags[flag] = "0";
            } else {
              flags[flag] = 0;
            }
          }
          ++flag;
        }
      },
      value);
}

// Attributes with one entry per channel, where others have one per axis: three numbers of a box of three channels may be its
// size.
bool is_of_channels(std::string_view name) {
  constexpr std::array<std::string_view, 10> kNames{"channels", "channel", "variables", "units", "transform",
                                                    "offset",   "scale",   "mean",      "std",   "roles"};
  return std::ranges::find(kNames, name) != kNames.end();
}

// Indices of channels. A vector that lost a component is none.
bool renumber(AttributeValue& value, int64_t begin, int64_t end) {
  std::vector<double> numbers;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (const std::string& text : *texts) numbers.push_back(std::atof(text.c_str()));
  } else {
    numbers = std::get<std::vector<double>>(value);
  }
  for (double& number : numbers) {
    if (number < static_cast<double>(begin) || number >= static_cast<double>(end)) return false;
    number -= static_cast<double>(begin);
  }
  if (auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (size_t i = 0; i < numbers.size(); ++i) (*texts)[i] = cat(static_cast<int64_t>(numbers[i]));
  } else {
    value = numbers;
  }
  return true;
}

}  // namespace

RegionCuts::RegionCuts(const ArrayFile& file, const ConvertOptions& options, const std::vector<std::string>& names,
                       ConvertReport& report)
    : file_(file), region_(options.region) {
  if (!region_) return;
  for (const std::string& name : names) {
    const ArrayFacts& facts = file.array(name)->facts();
    if (facts.shape.size() == region_->begin.size()) add_cuts(facts);
  }
  for (const std::string& name : names) check_latitudes(file.array(name)->facts(), names, report);
}

ArrayRegion RegionCuts::given_region(const ArrayFacts& facts) const {
  ArrayRegion region = whole_region(facts.shape);
  for (size_t d = 0; d < facts.shape.size(); ++d) {
    region.begin[d] = region_->begin[d];
    if (region_->end[d] >= 0) region.end[d] = region_->end[d];
    if (region.begin[d] < region.end[d] && region.end[d] <= facts.shape[d]) continue;
    throw DataError("data",
                    cat("a region outside the array: path=", facts.source, ", shape=", extents_text(facts.shape), ", axis=", d,
                        ", begin=", region.begin[d], ", end=", region.end[d]),
                    "Give --region begin:end,... inside the shape");
  }
  return region;
}

// A box has its channels first, or last as in the tutorials; other arrays as everywhere in a conversion.
std::optional<size_t> RegionCuts::channels_of(const ArrayFacts& facts) const {
  if (!is_box(file_, facts) || !facts.axes.empty()) return channel_axis(facts);
  const auto names = static_cast<int64_t>(file_.texts(facts.name, "channels").size());
  if (names == facts.shape[0] || names == facts.shape[3]) return names == facts.shape[0] ? 0 : 3;
  return facts.shape[0] <= facts.shape[3] ? 0 : 3;
}

// Names of the axes. Where the file has none: those of fields, of static planes on their grid, and of coordinates.
std::vector<std::string> RegionCuts::axes_of(const ArrayFacts& facts) const {
  const size_t rank = facts.shape.size();
  std::vector<std::string> axes(rank);
  if (facts.axes.size() == rank) {
    std::ranges::transform(facts.axes, axes.begin(), unified_name);
    if (rank > 1) return axes;
  }
  const bool is_time = is_coordinate(file_, CoordinateKind::Time, facts.name);
  const bool is_row = is_coordinate(file_, CoordinateKind::Latitude, facts.name);
  const bool is_column = is_coordinate(file_, CoordinateKind::Longitude, facts.name);
  if (rank == 1) {
    if (is_time || is_row || is_column) axes[0] = is_time ? kTimeAxis : is_row ? kRowAxis : kColumnAxis;
    if (axes[0].empty()) axes[0] = unified_name(facts.name);
    return axes;
  }
  const bool is_plane = (rank == 2 && (is_row || is_column)) || (rank == 3 && facts.name == "static");
  const bool is_field = rank == 4 && !is_box(file_, facts) && channel_axis(facts) == size_t{1};
  if (is_field) axes[0] = kTimeAxis, axes[1] = kChannelAxis;
  if (is_field || is_plane) axes[rank - 2] = kRowAxis, axes[rank - 1] = kColumnAxis;
  return axes;
}

void RegionCuts::add_cuts(const ArrayFacts& facts) {
  const ArrayRegion region = given_region(facts);
  const std::vector<std::string> axes = axes_of(facts);
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].empty() || is_whole(region, facts, d)) continue;
    cuts_.push_back({axes[d], facts.shape[d], region.begin[d], region.end[d]});
  }
}

ArrayRegion RegionCuts::region_of(const ArrayFacts& facts) const {
  if (!region_) return whole_region(facts.shape);
  if (facts.shape.size() == region_->begin.size()) return given_region(facts);
  ArrayRegion region = whole_region(facts.shape);
  const std::vector<std::string> axes = axes_of(facts);
  for (size_t d = 0; d < axes.size(); ++d) {
    const auto cut =
        std::ranges::find_if(cuts_, [&](const Axis& axis) { return axis.name == axes[d] && axis.length == facts.shape[d]; });
    if (cut != cuts_.end()) region.begin[d] = cut->begin, region.end[d] = cut->end;
  }
  return region;
}

void RegionCuts::cut_attributes(const ArrayFacts& facts, Attributes& attributes) const {
  if (!region_) return;
  const ArrayRegion region = region_of(facts);
  const auto channels = channels_of(facts);
  if (const auto found = attributes.find("periodic"); found != attributes.end() && facts.shape.size() > 1) {
    clear_periodic(found->second, region, facts, channels.value_or(facts.shape.size()));
  }
  if (!channels || is_whole(region, facts, *channels)) return;
  const int64_t begin = region.begin[*channels], end = region.end[*channels];
  const bool is_unclear = is_box(file_, facts) && facts.shape[*channels] + 1 == static_cast<int64_t>(facts.shape.size());
  std::vector<std::string> lost;
  for (auto& [name, value] : attributes) {
    if (name == "periodic" || (is_unclear && name != "vector_channels" && !is_of_channels(name))) continue;
    if (name == "vector_channels") {
      if (!renumber(value, begin, end)) lost.push_back(name);
    } else if (num_entries(value) == static_cast<size_t>(facts.shape[*channels])) {
      std::visit([&](auto& entries) { entries = {entries.begin() + begin, entries.begin() + end}; }, value);
    }
  }
  for (const std::string& name : lost) attributes.erase(name);
}

// Readers take rows without latitudes for equally spaced ones from pole to pole. Those of a part are not.
void RegionCuts::check_latitudes(const ArrayFacts& facts, const std::vector<std::string>& names, ConvertReport& report) const {
  const std::vector<std::string> axes = axes_of(facts);
  const auto row = std::ranges::find(axes, kRowAxis);
  if (facts.shape.size() < 3 || row == axes.end() || row + 1 == axes.end() || *(row + 1) != kColumnAxis) return;
  const auto axis = static_cast<size_t>(row - axes.begin());
  const ArrayRegion region = region_of(facts);
  if (is_whole(region, facts, axis)) return;
  const PlaceAxis places = read_places(file_, CoordinateKind::Latitude, {facts.shape[axis], facts.shape[axis + 1]});
  const std::string what =
      cat("path=", facts.source, ", rows=", region.begin[axis], " to ", region.end[axis], " of ", facts.shape[axis]);
  if (places.degrees.empty() && places.problem.empty()) {
    if (facts.name == "fields") {
      throw DataError(
          "data",
          cat("rows are cut from fields whose latitudes are not known, and the part would be taken for a whole globe: ", what),
          "Add an array latitude to the file (degrees, one value per row), or leave the rows whole in --region");
    }
    report.notes.push_back(
        cat("rows are cut, and the file has no latitudes: ", what,
            ". If these are fields on a globe, add an array latitude (degrees, one value per row) first: without "
            "one, readers take the part for a whole globe"));
    return;
  }
  const bool is_kept = std::ranges::any_of(names, [&](const std::string& name) {
    return is_coordinate(file_, CoordinateKind::Latitude, file_.array(name)->facts().name);
  });
  if (is_kept) return;
  report.notes.push_back(cat("rows are cut, and the latitudes are left out: ", what,
                             ". Name them with --array too: without them, readers take the part for a whole globe"));
}

}  // namespace welkin::data
