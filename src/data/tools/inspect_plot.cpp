// SPDX-License-Identifier: Apache-2.0
#include "data/tools/inspect_plot.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/printable.h"
#include "core/text.h"
#include "data/datasets/field_file.h"
#include "data/formats/array_file.h"
#include "data/ingest/channels.h"
#include "data/tools/inspect_fields.h"
#include "data/tools/inspect_hdf5.h"
#include "observe/image/panels.h"
#include "observe/image/png.h"
#include "observe/plot/plot_picture.h"

namespace welkin::data {
namespace {

namespace fs = std::filesystem;

struct Plane {
  std::string title;
  int64_t rows = 0, columns = 0;
  std::vector<float> values;  // row 0 on top
};

std::optional<int64_t> number_in(const std::string& text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The place among `count` by its number; a negative one counts from the end.
int64_t place_of(const std::string& text, int64_t count, const char* what) {
  const auto number = number_in(text);
  if (number && *number >= -count && *number < count) return *number < 0 ? *number + count : *number;
  throw ConfigError("data", cat("there is no such ", what, ": ", what, "=", text, ", count=", count),
                    cat("Give a number from 0 to ", count - 1));
}

// The place of a time, by number or by date.
int64_t time_place(const std::string& text, const std::vector<int64_t>& times, Calendar calendar) {
  const auto count = static_cast<int64_t>(times.size());
  if (text.empty()) return 0;
  if (number_in(text) && text.size() < 8) return place_of(text, count, "time");
  const auto found = std::ranges::find(times, parse_date(text, calendar));
  if (found != times.end()) return found - times.begin();
  throw ConfigError("data",
                    cat("there is no such time: time=", text, ", first=", format_date(calendar, times.front()),
                        ", last=", format_date(calendar, times.back())),
                    cat("Give one of the ", count, " times, or its number from 0"));
}

std::string unit_in_brackets(const std::string& unit) { return unit.empty() ? "" : cat(" [", unit, "]"); }

Plane plane_of_fields(const fs::path& path, const FieldPlotOptions& options) {
  const ingest::Component component({}, options.helper);
  const ingest::Inventory inventory = inventory_of(component, path);
  ingest::Options selection;
  if (!options.channel.empty()) selection.variables = {{options.channel, ""}};
  const ingest::ChannelPlan plan = ingest::plan_channels(inventory, selection);
  const ingest::Feed& feed = plan.feeds.front();
  const auto& variable = inventory.variables[static_cast<size_t>(feed.variable)];
  std::vector<const ingest::Field*> fields;
  for (const auto& field : inventory.fields) {
    if (field.variable == feed.variable && field.level == feed.level) fields.push_back(&field);
  }
  std::ranges::stable_sort(fields, {}, [](const auto* field) { return field->time; });
  std::vector<int64_t> times;
  for (const auto* field : fields) times.push_back(field->time);
  const auto& field = *fields[static_cast<size_t>(time_place(options.time, times, variable.calendar))];
  const auto& grid = inventory.grids[static_cast<size_t>(variable.grid)];
  Plane plane{.title = cat(feed.name, unit_in_brackets(variable.units)),
              .rows = static_cast<int64_t>(grid.latitude.size()),
              .columns = static_cast<int64_t>(grid.longitude.size()),
              .values = std::vector<float>(static_cast<size_t>(grid.num_points()))};
  if (variable.has_time) plane.title += cat(", ", format_date(variable.calendar, field.time));
  read_field(*component.open(path, inventory.files.front().format), inventory, field, plane.values);
  return plane;
}

int64_t channel_place(const std::string& wanted, const std::vector<std::string>& names, int64_t count) {
  if (wanted.empty()) return 0;
  const auto found = std::ranges::find(names, wanted);
  if (found != names.end()) return found - names.begin();
  if (number_in(wanted)) return place_of(wanted, count, "channel");
  throw ConfigError("data", cat("there is no such channel: channel=", wanted),
                    names.empty() ? cat("Give a number from 0 to ", count - 1) : cat("There are: ", join(names, ", ")));
}

Plane plane_of_training_file(const fs::path& path, const FieldPlotOptions& options) {
  const FieldFile file(path);
  const FieldFacts& facts = file.facts();
  const int64_t channel = channel_place(options.channel, facts.channel_names, facts.channels);
  const auto c = static_cast<size_t>(channel);
  const Calendar calendar = parse_calendar(facts.calendar);
  const bool dated = !facts.time.empty();
  const int64_t step = dated                  ? time_place(options.time, facts.time, calendar)
                       : options.time.empty() ? 0
                                              : place_of(options.time, facts.steps, "time");
  Plane plane{.title = c < facts.channel_names.size() ? facts.channel_names[c] : cat("channel ", channel),
              .rows = facts.height,
              .columns = facts.width,
              .values = std::vector<float>(static_cast<size_t>(facts.height * facts.width))};
  if (c < facts.units.size()) plane.title += unit_in_brackets(facts.units[c]);
  plane.title += dated ? cat(", ", format_date(calendar, facts.time[static_cast<size_t>(step)])) : cat(", step ", step);
  file.read_channel(step, channel, {.height = facts.height, .width = facts.width}, plane.values);
  if (facts.latitude.size() > 1 && facts.latitude.front() < facts.latitude.back()) {
    for (int64_t row = 0; row < facts.height / 2; ++row) {
      std::swap_ranges(plane.values.begin() + row * facts.width, plane.values.begin() + (row + 1) * facts.width,
                       plane.values.begin() + (facts.height - 1 - row) * facts.width);
    }
  }
  return plane;
}

struct ArrayChoice {
  std::string name;
  int64_t channel_axis = -1, channel = 0;
  std::vector<std::string> names;
};

// Chooses by a channel's name, by an array's name, or the first array of two and more axes.
ArrayChoice choose_array(const ArrayFile& file, const std::string& wanted) {
  std::vector<std::string> known;
  for (const auto& [name, array] : file.arrays) {
    const Extents& shape = array->facts().shape;
    if (shape.size() < 2) continue;
    ArrayChoice choice{.name = name, .channel_axis = -1, .channel = 0, .names = file.texts(name, "channels")};
    for (size_t axis = 0; axis + 2 < shape.size(); ++axis) {
      if (!choice.names.empty() && shape[axis] == static_cast<int64_t>(choice.names.size()))
        choice.channel_axis = static_cast<int64_t>(axis);
    }
    const auto found = std::ranges::find(choice.names, wanted);
    if (choice.channel_axis >= 0 && found != choice.names.end()) choice.channel = found - choice.names.begin();
    if (wanted.empty() || wanted == name || found != choice.names.end()) return choice;
    known.push_back(name);
    known.insert(known.end(), choice.names.begin(), choice.names.end());
  }
  throw ConfigError("data", cat("there is nothing to draw: path=", file.path.string(), ", channel=", wanted),
                    known.empty() ? "Choose a file with an array of rows and columns" : cat("There are: ", join(known, ", ")));
}

Plane plane_of_array(const ArrayFile& file, const FieldPlotOptions& options) {
  const ArrayChoice choice = choose_array(file, options.channel);
  const StoredArrayPtr array = file.array(choice.name);
  const Extents& shape = array->facts().shape;
  Plane plane{.title = choice.name.empty() ? file.path.filename().string() : choice.name,
              .rows = shape[shape.size() - 2],
              .columns = shape.back(),
              .values = {}};
  ArrayRegion region = whole_region(shape);
  bool is_chosen = false;
  for (size_t axis = 0; axis + 2 < shape.size(); ++axis) {
    int64_t place = 0;
    if (static_cast<int64_t>(axis) == choice.channel_axis) {
      place = choice.channel;
      plane.title += cat(", ", choice.names[static_cast<size_t>(place)]);
    } else if (!is_chosen && axis + 3 == shape.size()) {
      is_chosen = true;
      place = options.time.empty() ? shape[axis] / 2 : place_of(options.time, shape[axis], "time");
      plane.title += cat(", plane ", place);
    }
    region.begin[axis] = place;
    region.end[axis] = place + 1;
  }
  constexpr int64_t kMostPoints = int64_t{1} << 28;
  if (plane.rows < 1 || plane.columns < 1 || plane.rows > kMostPoints / plane.columns)
    throw DataError(
        "data",
        cat("a plane that cannot be drawn: path=", file.path.string(), ", rows=", plane.rows, ", columns=", plane.columns),
        "Choose another array with --channel");
  plane.values.resize(static_cast<size_t>(plane.rows * plane.columns));
  array->read(region, plane.values);
  return plane;
}

Plane read_plane_of(const fs::path& path, const FieldPlotOptions& options) {
  if (fs::is_regular_file(path)) {
    const ingest::Format format = ingest::format_of_file(path);
    if (format == ingest::Format::Grib || format == ingest::Format::Netcdf3) return plane_of_fields(path, options);
  }
  const ArrayFile file = open_array_file(path);
  if (file.has("fields") && file.array("fields")->facts().shape.size() == 4) return plane_of_training_file(path, options);
  const bool is_netcdf = std::ranges::any_of(file.attributes, [&](const auto& object) {
    return file.texts(object.first, "CLASS") == std::vector<std::string>{"DIMENSION_SCALE"};
  });
  return is_netcdf ? plane_of_fields(path, options) : plane_of_array(file, options);
}

}  // namespace

std::string plot_field(const fs::path& path, const FieldPlotOptions& options) {
  const std::string ending = options.output.extension().string();
  if (ending != ".png" && ending != ".svg")
    throw ConfigError("data", cat("neither PNG nor SVG: plot=", options.output.string()), "Let the name end in .png or .svg");
  const Plane plane = read_plane_of(path, options);
  const auto raster = observe::image::draw_panels({.width = 900,
                                                   .height = 600,
                                                   .panels = {{.title = printable(plane.title),
                                                               .values = plane.values,
                                                               .rows = static_cast<int>(plane.rows),
                                                               .columns = static_cast<int>(plane.columns)}}});
  if (ending == ".png") {
    observe::image::write_png(options.output, raster);
  } else {
    write_file_atomically(options.output, observe::picture_svg(raster, printable(plane.title)));
  }
  RunningMoments moments;
  moments.add(plane.values);
  return cat("wrote ", options.output.string(), ": ", printable(plane.title), ", ", plane.rows, "x", plane.columns, ", ",
             moments_text(moments), "\n");
}

}  // namespace welkin::data
