// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/field_source.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "data/cf/archive.h"
#include "data/formats/check_arrays.h"
#include "data/sample/likeness.h"

namespace welkin::data {
namespace {

void check_no_choice(const FieldSource& source) {
  if (source.times.empty() && source.levels.empty()) return;
  throw ConfigError("data",
                    cat("levels and times are chosen of an archive of variables: folder=", source.folder.string(), ", levels=[",
                        join(source.levels, ", "), "], ", source.times_key, "=[", join(source.times, ", "), "]"),
                    "Name its variables as well, or leave these out");
}

FieldFiles open_archive_files(const FieldSource& source, const std::shared_ptr<ChunkCache>& cache) {
  Archive archive = open_archive({.path = source.folder,
                                  .variables = source.variables,
                                  .levels = source.levels,
                                  .times = source.times,
                                  .times_key = source.times_key,
                                  .time_keys = source.time_keys},
                                 cache);
  FieldFiles result{.files = {}, .paths = std::move(archive.files)};
  for (const ArrayFile& part : archive.parts) result.files.push_back(std::make_unique<FieldFile>(part, source.time_keys));
  return result;
}

std::string difference_of_names(std::string_view what, const std::vector<std::string>& first,
                                const std::vector<std::string>& other) {
  if (first.empty() || other.empty() || first == other) return {};
  return cat(what, ": ", join(first, " "), " and ", join(other, " "));
}

}  // namespace

double hours_between_steps(const FieldFacts& facts) {
  std::vector<int64_t> steps;
  for (size_t t = 1; t < facts.time.size(); ++t) steps.push_back(facts.time[t] - facts.time[t - 1]);
  if (steps.empty()) return 0;
  std::ranges::nth_element(steps, steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2));
  return static_cast<double>(steps[steps.size() / 2]) / 3600;
}

std::string difference_between(const FieldFacts& first, const FieldFacts& other, bool with_steps) {
  const auto grid = [](const FieldFacts& facts) { return cat(facts.channels, " x ", facts.height, " x ", facts.width); };
  if (grid(first) != grid(other)) return cat("shape: ", grid(first), " and ", grid(other));
  if (first.channel_names.empty() != other.channel_names.empty()) return "channels: names and none";
  for (std::string text : {difference_of_names("channels", first.channel_names, other.channel_names),
                           difference_of_units(first.channel_names, first.units, other.units),
                           difference_of_places("latitudes", first.latitude, other.latitude),
                           difference_of_places("longitudes", first.longitude, other.longitude)}) {
    if (!text.empty()) return text;
  }
  if (first.static_names != other.static_names) {
    return cat("static channels: ", join(first.static_names, " "), " and ", join(other.static_names, " "));
  }
  if (first.roles != other.roles) return cat("roles: ", join(first.roles, " "), " and ", join(other.roles, " "));
  if (first.calendar != other.calendar) return cat("calendars: ", first.calendar, " and ", other.calendar);
  return with_steps ? difference_of_hours("hours between steps", hours_between_steps(first), hours_between_steps(other))
                    : std::string();
}

FieldFiles open_field_files(const FieldSource& source) {
  const auto cache = std::make_shared<ChunkCache>(kChunkCacheBytes);
  if (!source.variables.empty()) return open_archive_files(source, cache);
  check_no_choice(source);
  FieldFiles result{.files = {}, .paths = list_field_files(source.folder)};
  check_array_files(result.paths);
  for (const auto& path : result.paths) result.files.push_back(std::make_unique<FieldFile>(path, cache, source.time_keys));
  return result;
}

std::unique_ptr<FieldFile> open_first_field_file(const FieldSource& source) {
  if (!source.variables.empty()) return std::move(open_field_files(source).files.front());
  return std::make_unique<FieldFile>(list_field_files(source.folder).front(), nullptr, source.time_keys);
}

}  // namespace welkin::data
