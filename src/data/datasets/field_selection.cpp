// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/field_selection.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "data/datasets/crop_range.h"

namespace welkin::data {
namespace {

// The largest edge within so many points that the model takes.
int64_t fitting(int64_t points, int64_t multiple) { return points < multiple ? points : points - points % multiple; }

void check_crop(const FieldFacts& facts, const FieldWindow& window, int64_t multiple, bool may_wrap) {
  if (window.height > facts.height || window.width > facts.width) {
    throw DataError("data",
                    cat("the grid is smaller than img_size: path=", facts.path.string(), ", grid=", facts.height, " x ",
                        facts.width, ", img_size=", window.height, " x ", window.width),
                    cat("Set img_size to at most the grid, divisible by patch_size, as in --set 'img_size=[",
                        fitting(facts.height, multiple), ",", fitting(facts.width, multiple), "]'"));
  }
  const int64_t last_row = facts.height - window.height, last_column = facts.width - window.width;
  if (window.row <= last_row && (window.column <= last_column || may_wrap)) return;
  throw DataError("data",
                  cat("the crop leaves the grid: path=", facts.path.string(), ", grid=", facts.height, " x ", facts.width,
                      ", crop=[", window.row, ", ", window.column, "], img_size=", window.height, " x ", window.width),
                  cat("Set crop to at most [", last_row, ", ", last_column, "], or a smaller img_size"));
}

[[noreturn]] void refuse_few(const FieldFacts& facts, const FieldWindow& window, int64_t rows, int64_t columns,
                             int64_t multiple) {
  throw DataError("data",
                  cat("the range holds fewer points than img_size: path=", facts.path.string(), ", points of the range=", rows,
                      " x ", columns, ", img_size=", window.height, " x ", window.width),
                  cat("Set img_size to at most [", fitting(rows, multiple), ", ", fitting(columns, multiple),
                      "], divisible by patch_size, or take a wider range"));
}

FieldWindow window_of_crop(const FieldFacts& facts, const Era5Options& options) {
  FieldWindow window;
  if (options.crop) window.row = options.crop->at(0), window.column = options.crop->at(1);
  std::optional<GridRange> rows, columns;
  if (!options.crop_latitude.empty()) rows = rows_within(facts, options.crop_latitude), window.row = rows->first;
  if (!options.crop_longitude.empty()) columns = columns_within(facts, options.crop_longitude), window.column = columns->first;
  const int64_t height = rows ? rows->count : facts.height - window.row;
  const int64_t width = columns ? columns->count : facts.width - window.column;
  window.height = options.height == 0 ? std::max<int64_t>(1, height) : options.height;
  window.width = options.width == 0 ? std::max<int64_t>(1, width) : options.width;
  if ((rows && window.height > rows->count) || (columns && window.width > columns->count))
    refuse_few(facts, window, height, width, options.multiple);
  check_crop(facts, window, options.multiple, /*may_wrap=*/columns.has_value());
  return window;
}

void check_channel_count(const FieldFacts& facts, const Era5Options& options) {
  const int64_t in = options.in_names.empty() ? options.in_channels : 0;
  const int64_t out = options.out_names.empty() ? options.out_channels : 0;
  if (std::max(in, out) <= facts.channels) return;
  throw DataError("data",
                  cat("the file has too few channels: path=", facts.path.string(), ", channels=", facts.channels,
                      ", n_in_channels=", options.in_channels, ", n_out_channels=", options.out_channels),
                  "Set n_in_channels and n_out_channels to what the file holds, or to 0: by the channels' roles, else all");
}

std::vector<int64_t> first_channels(int64_t count) {
  std::vector<int64_t> channels(static_cast<size_t>(count));
  std::iota(channels.begin(), channels.end(), 0);
  return channels;
}

std::vector<int64_t> named_channels(const FieldFacts& facts, const std::vector<std::string>& names,
                                    const std::vector<std::string>& wanted, std::string_view key) {
  std::vector<int64_t> channels;
  for (const std::string& name : wanted) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      throw ConfigError("data", cat("the file has no such channel: ", key, "=", name, ", path=", facts.path.string()),
                        cat("Choose from: ", join(names, ", ")));
    }
    channels.push_back(found - names.begin());
  }
  return channels;
}

// A number of channels beside roles is the one that follows from them, or 0.
void check_role_count(const std::vector<std::string>& names, const FieldSelection& selection, std::string_view key, int64_t given,
                      const std::vector<int64_t>& channels) {
  if (given == 0 || given == static_cast<int64_t>(channels.size())) return;
  throw ConfigError("data",
                    cat("a number of channels contradicts their roles: ", key, "=", given, ", by the roles=", channels.size(),
                        " (", roles_text(names, selection.roles), ")"),
                    cat("Set ", key, " to 0, which follows the roles, or give other roles with the key roles"));
}

bool has_crop(const Era5Options& options) {
  return options.crop || !options.crop_latitude.empty() || !options.crop_longitude.empty();
}

// "30 to 59, latitude 0 to -28.5"; the values where the file says them.
std::string range_text(int64_t first, int64_t end, std::string_view coordinate, const std::vector<double>& values) {
  std::string text = end - first == 1 ? cat(first) : cat(first, " to ", end - 1);
  if (values.empty()) return text;
  const double from = values[static_cast<size_t>(first)], to = values[static_cast<size_t>(end - 1)];
  return text + (end - first == 1 ? cat(", ", coordinate, " ", from) : cat(", ", coordinate, " ", from, " to ", to));
}

struct Axis {
  std::string_view name, coordinate;
  int64_t begin = 0, extent = 0, size = 0;
  const std::vector<double>& values;
};

std::vector<Axis> axes_of(const FieldFacts& facts, const FieldWindow& window) {
  return {{"rows", "latitude", window.row, window.height, facts.height, facts.latitude},
          {"columns", "longitude", window.column, window.width, facts.width, facts.longitude}};
}

// Text of the crop's range. Columns that go on at the first one have two parts.
std::string taken_text(const Axis& axis) {
  const int64_t end = axis.begin + axis.extent, last = std::min(end, axis.size);
  const std::string first = range_text(axis.begin, last, axis.coordinate, axis.values);
  return cat(axis.name, " ", first, end > last ? " and " : "",
             end > last ? range_text(0, end - last, axis.coordinate, axis.values) : std::string());
}

// Text of the ranges before and after the crop.
std::string outside_text(const Axis& axis) {
  std::vector<std::string> parts;
  const int64_t end = axis.begin + axis.extent;
  if (axis.begin > 0) parts.push_back(range_text(0, axis.begin, axis.coordinate, axis.values));
  if (end < axis.size) parts.push_back(range_text(end, axis.size, axis.coordinate, axis.values));
  return cat(axis.name, "=", axis.size - axis.extent, " of ", axis.size, " (", join(parts, "; "), ")");
}

std::string unused_channels_text(const FieldFacts& facts, const FieldSelection& selection, const Era5Options& options) {
  constexpr size_t kShown = 24;
  const std::vector<std::string> names = file_channel_names(facts, options);
  std::vector<std::string> unused;
  for (int64_t c = 0; c < facts.channels; ++c) {
    if (std::ranges::count(selection.input, c) + std::ranges::count(selection.target, c) > 0) continue;
    unused.push_back(names[static_cast<size_t>(c)]);
  }
  if (unused.empty()) return {};
  const size_t count = unused.size();
  if (count > kShown) {
    unused.resize(kShown);
    unused.push_back("...");
  }
  return cat("channels=", count, " of ", facts.channels, " (", join(unused, ", "), ")");
}

std::string names_at(const std::vector<std::string>& names, const std::vector<int64_t>& channels) {
  std::vector<std::string> chosen;
  for (const int64_t channel : channels) chosen.push_back(names[static_cast<size_t>(channel)]);
  return join(chosen, ", ");
}

}  // namespace

std::vector<std::string> file_channel_names(const FieldFacts& facts, const Era5Options& options) {
  std::vector<std::string> names = options.channel_names.empty() ? facts.channel_names : options.channel_names;
  for (auto c = static_cast<int64_t>(names.size()); c < facts.channels; ++c) names.push_back(cat("channel", c));
  names.resize(static_cast<size_t>(facts.channels));
  return names;
}

FieldSelection select_fields(const FieldFacts& facts, const Era5Options& options) {
  FieldSelection selection;
  selection.window = window_of_crop(facts, options);
  check_channel_count(facts, options);
  const std::vector<std::string> names = file_channel_names(facts, options);
  selection.roles = channel_roles(names, facts.roles, options.roles);
  const auto channels = [&](const std::vector<std::string>& wanted, int64_t count, std::string_view key, auto&& by_roles) {
    if (!wanted.empty()) return named_channels(facts, names, wanted, key);
    if (selection.roles.empty()) return first_channels(count == 0 ? facts.channels : count);
    std::vector<int64_t> found = by_roles(selection.roles);
    check_role_count(names, selection, cat("n_", key), count, found);
    return found;
  };
  selection.input = channels(options.in_names, options.in_channels, "in_channels", inputs_of);
  selection.target = channels(options.out_names, options.out_channels, "out_channels", targets_of);
  if (!selection.roles.empty()) check_chosen(names, selection.roles, selection.input, selection.target);
  return selection;
}

std::string left_out_text(const FieldFacts& facts, const FieldSelection& selection, const Era5Options& options) {
  std::vector<std::string> parts;
  for (const Axis& axis : axes_of(facts, selection.window)) {
    if (!has_crop(options) && axis.extent < axis.size) parts.push_back(outside_text(axis));
  }
  if (options.in_names.empty() && options.out_names.empty() && selection.roles.empty()) {
    if (const std::string text = unused_channels_text(facts, selection, options); !text.empty()) parts.push_back(text);
  }
  if (parts.empty()) return {};
  return cat("part of the data is left out: ", join(parts, ", "),
             ". To choose: img_size and crop, n_in_channels and n_out_channels, or in_channels and out_channels");
}

std::string chosen_text(const FieldFacts& facts, const FieldSelection& selection, const Era5Options& options) {
  std::vector<std::string> parts;
  if (has_crop(options)) {
    for (const Axis& axis : axes_of(facts, selection.window)) parts.push_back(taken_text(axis));
  }
  const std::vector<std::string> names = file_channel_names(facts, options);
  if (!options.in_names.empty()) parts.push_back(cat("input channels ", names_at(names, selection.input)));
  if (!options.out_names.empty()) parts.push_back(cat("target channels ", names_at(names, selection.target)));
  if (!selection.roles.empty()) parts.push_back(roles_text(names, selection.roles));
  return parts.empty() ? "" : cat("Chosen of the data: ", join(parts, "; "));
}

std::vector<ChannelRun> channel_runs(const std::vector<int64_t>& channels) {
  std::vector<ChannelRun> runs;
  for (const int64_t channel : channels) {
    if (!runs.empty() && runs.back().first + runs.back().count == channel) {
      ++runs.back().count;
    } else {
      runs.push_back({channel, 1});
    }
  }
  return runs;
}

}  // namespace welkin::data
