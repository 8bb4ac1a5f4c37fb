// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/field_selection.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

void check_crop(const FieldFacts& facts, const FieldWindow& window) {
  if (window.height > facts.height || window.width > facts.width) {
    throw DataError("data",
                    cat("the grid is smaller than img_size: path=", facts.path.string(), ", grid=", facts.height, " x ",
                        facts.width, ", img_size=", window.height, " x ", window.width),
                    cat("Set img_size to at most the grid, divisible by patch_size, as in --set 'img_size=[", facts.height, ",",
                        facts.width, "]'"));
  }
  const int64_t last_row = facts.height - window.height, last_column = facts.width - window.width;
  if (window.row <= last_row && window.column <= last_column) return;
  throw DataError("data",
                  cat("the crop leaves the grid: path=", facts.path.string(), ", grid=", facts.height, " x ", facts.width,
                      ", crop=[", window.row, ", ", window.column, "], img_size=", window.height, " x ", window.width),
                  cat("Set crop to at most [", last_row, ", ", last_column, "], or a smaller img_size"));
}

FieldWindow window_of_crop(const FieldFacts& facts, const Era5Options& options) {
  FieldWindow window;
  if (options.crop) window.row = options.crop->at(0), window.column = options.crop->at(1);
  window.height = options.height == 0 ? std::max<int64_t>(1, facts.height - window.row) : options.height;
  window.width = options.width == 0 ? std::max<int64_t>(1, facts.width - window.column) : options.width;
  check_crop(facts, window);
  return window;
}

void check_channel_count(const FieldFacts& facts, const Era5Options& options) {
  const int64_t in = options.in_names.empty() ? options.in_channels : 0;
  const int64_t out = options.out_names.empty() ? options.out_channels : 0;
  if (std::max(in, out) <= facts.channels) return;
  throw DataError("data",
                  cat("the file has too few channels: path=", facts.path.string(), ", channels=", facts.channels,
                      ", n_in_channels=", options.in_channels, ", n_out_channels=", options.out_channels),
                  "Set n_in_channels and n_out_channels to what the file holds");
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

// What lies before the crop and after it.
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
  const auto channels = [&](const std::vector<std::string>& wanted, int64_t count, std::string_view key) {
    if (wanted.empty()) return first_channels(count == 0 ? facts.channels : count);
    return named_channels(facts, names, wanted, key);
  };
  selection.input = channels(options.in_names, options.in_channels, "in_channels");
  selection.target = channels(options.out_names, options.out_channels, "out_channels");
  return selection;
}

std::string left_out_text(const FieldFacts& facts, const FieldSelection& selection, const Era5Options& options) {
  std::vector<std::string> parts;
  for (const Axis& axis : axes_of(facts, selection.window)) {
    if (!options.crop && axis.extent < axis.size) parts.push_back(outside_text(axis));
  }
  if (options.in_names.empty() && options.out_names.empty()) {
    if (const std::string text = unused_channels_text(facts, selection, options); !text.empty()) parts.push_back(text);
  }
  if (parts.empty()) return {};
  return cat("part of the data is left out: ", join(parts, ", "),
             ". To choose: img_size and crop, n_in_channels and n_out_channels, or in_channels and out_channels");
}

std::string chosen_text(const FieldFacts& facts, const FieldSelection& selection, const Era5Options& options) {
  std::vector<std::string> parts;
  if (options.crop) {
    for (const Axis& axis : axes_of(facts, selection.window)) {
      parts.push_back(cat(axis.name, " ", range_text(axis.begin, axis.begin + axis.extent, axis.coordinate, axis.values)));
    }
  }
  const std::vector<std::string> names = file_channel_names(facts, options);
  if (!options.in_names.empty()) parts.push_back(cat("input channels ", names_at(names, selection.input)));
  if (!options.out_names.empty()) parts.push_back(cat("target channels ", names_at(names, selection.target)));
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
