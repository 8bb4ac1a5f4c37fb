// SPDX-License-Identifier: Apache-2.0
#include "data/cf/archive.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/error.h"
#include "core/text.h"
#include "data/cf/archive_inventory.h"
#include "data/cf/composed_fields.h"
#include "data/formats/memory_array.h"

namespace welkin::data {
namespace {

std::string year_text_of(int64_t seconds, Calendar calendar, bool by_year) {
  const std::string date = format_date(calendar, seconds);
  return by_year ? date.substr(0, date.find('-', 1)) : date;
}

StoredArrayPtr memory_axis(const std::filesystem::path& path, const std::string& name, std::vector<double> values) {
  ArrayFacts facts{.source = cat(path.string(), ", dataset=", name), .name = name, .axes = {}, .packing = {}};
  facts.shape = {static_cast<int64_t>(values.size())};
  return make_memory_array(std::move(facts), std::move(values));
}

// Cuts an inventory into parts.
class ArchiveCutter {
 public:
  ArchiveCutter(std::filesystem::path path, ArchiveInventory found) : path_(std::move(path)), found_(std::move(found)) {}

  Archive archive() {
    cut();
    archive_.files = std::move(found_.files);
    return std::move(archive_);
  }

 private:
  const ArchiveVariable& variable_of(const ArchiveChannel& channel) const { return found_.variables[channel.variable]; }

  // Cuts at gaps, and at years of many steps.
  void cut() {
    constexpr int64_t kYearSeconds = 360 * int64_t{86400}, kStepsOfYear = 100;
    const auto& places = found_.times();
    const auto count = static_cast<int64_t>(places.size());
    const auto time = [&](int64_t i) { return places[static_cast<size_t>(i)].seconds; };
    int64_t shortest = kYearSeconds;
    for (int64_t i = 1; i < count; ++i) shortest = std::min(shortest, time(i) - time(i - 1));
    const bool by_year = kYearSeconds / shortest >= kStepsOfYear;
    const auto begins_part = [&](int64_t i) {
      if ((time(i) - time(i - 1)) * 2 > shortest * 3) return true;  // the same test as in check_time_order()
      return by_year && to_date(found_.calendar, time(i)).year != to_date(found_.calendar, time(i - 1)).year;
    };
    const StoredArrayPtr statics = read_statics();
    for (int64_t begin = 0, i = 1; i <= count; ++i) {
      if (i < count && !begins_part(i)) continue;
      add_part(begin, i, by_year, statics);
      begin = i;
    }
  }

  std::vector<ArchiveChannel> channels_with(bool has_time) const {
    std::vector<ArchiveChannel> chosen;
    std::ranges::copy_if(found_.channels, std::back_inserter(chosen),
                         [&](const ArchiveChannel& channel) { return variable_of(channel).first().has_time == has_time; });
    return chosen;
  }

  std::vector<ComposedSteps> steps_of(const ArchiveVariable& variable, int64_t begin, int64_t end) const {
    const auto in_piece = [&](size_t piece) {
      const FileVariable& found = variable.pieces[piece].variable;
      return ComposedSteps{
          .array = found.array, .has_time = found.has_time, .has_level = found.has_level, .south_first = found.south_first};
    };
    std::vector<ComposedSteps> runs;
    if (!variable.first().has_time) {
      runs.push_back(in_piece(0));
      runs.back().end = 1;
      return runs;
    }
    for (int64_t i = begin; i < end; ++i) {
      const TimePlace& place = variable.places[static_cast<size_t>(i)];
      const bool follows = !runs.empty() && variable.places[static_cast<size_t>(i - 1)].piece == place.piece &&
                           variable.places[static_cast<size_t>(i - 1)].step + 1 == place.step;
      if (!follows) {
        runs.push_back(in_piece(place.piece));
        runs.back().begin = i - begin;
        runs.back().first = place.step;
      }
      runs.back().end = i - begin + 1;
    }
    return runs;
  }

  // One array of channels whose variables all have times, or all have none.
  std::shared_ptr<const StoredArray> composed(const std::string& source, const std::vector<ArchiveChannel>& channels,
                                              int64_t begin, int64_t end) const {
    std::map<size_t, size_t> numbers;
    std::vector<std::vector<ComposedSteps>> steps;
    std::vector<ComposedChannel> chosen;
    for (const ArchiveChannel& channel : channels) {
      const auto [number, is_new] = numbers.emplace(channel.variable, steps.size());
      if (is_new) steps.push_back(steps_of(variable_of(channel), begin, end));
      chosen.push_back({number->second, channel.level});
    }
    const Extents shape{end - begin, static_cast<int64_t>(channels.size()), static_cast<int64_t>(found_.grid().latitude.size()),
                        static_cast<int64_t>(found_.grid().longitude.size())};
    return std::make_shared<ComposedFields>(source, shape, std::move(steps), std::move(chosen));
  }

  StoredArrayPtr read_statics() const {
    const auto channels = channels_with(/*has_time=*/false);
    if (channels.empty()) return nullptr;
    const std::string source = cat(path_.string(), ", dataset=static");
    const auto fields = composed(source, channels, 0, 1);
    const Extents& shape = fields->facts().shape;
    ArrayFacts facts{.source = source, .name = "static", .shape = {shape[1], shape[2], shape[3]}, .axes = {}, .packing = {}};
    return make_memory_array(std::move(facts), fields->read_doubles());
  }

  void describe(ArrayFile& file, const std::string& array, bool has_time) const {
    std::vector<std::string> names, units;
    for (const ArchiveChannel& channel : channels_with(has_time)) {
      names.push_back(channel.name);
      units.push_back(variable_of(channel).first().units);
    }
    file.attributes[array]["channels"] = std::move(names);
    file.attributes[array]["units"] = std::move(units);
  }

  void add_part(int64_t begin, int64_t end, bool by_year, const StoredArrayPtr& statics) {
    const int64_t first = found_.times()[static_cast<size_t>(begin)].seconds;
    ArrayFile file{.path = cat(path_.string(), "#", year_text_of(first, found_.calendar, by_year)),
                   .format = "archive",
                   .arrays = {},
                   .not_numbers = {},
                   .attributes = {}};
    file.arrays["fields"] = composed(cat(file.path.string(), ", dataset=fields"), channels_with(/*has_time=*/true), begin, end);
    describe(file, "fields", /*has_time=*/true);
    if (statics) {
      file.arrays["static"] = statics;
      describe(file, "static", /*has_time=*/false);
    }
    file.arrays["latitude"] = memory_axis(file.path, "latitude", found_.grid().latitude);
    file.arrays["longitude"] = memory_axis(file.path, "longitude", found_.grid().longitude);
    std::vector<double> times;
    for (int64_t i = begin; i < end; ++i) times.push_back(static_cast<double>(found_.times()[static_cast<size_t>(i)].seconds));
    file.arrays["time"] = memory_axis(file.path, "time", std::move(times));
    const auto set = [&](const char* array, const char* attribute, std::string text) {
      file.attributes[array][attribute] = std::vector<std::string>{std::move(text)};
    };
    set("latitude", "units", "degrees_north");
    set("longitude", "units", "degrees_east");
    set("time", "units", std::string(kOurTimeUnits));
    set("time", "calendar", std::string(name_of(found_.calendar)));
    archive_.parts.push_back(std::move(file));
  }

  std::filesystem::path path_;
  ArchiveInventory found_;
  Archive archive_;
};

}  // namespace

Archive open_archive(const ArchiveOptions& options, const std::shared_ptr<ChunkCache>& cache) {
  WELKIN_CHECK(!options.variables.empty(), "an archive without variables");
  return ArchiveCutter(options.path, take_archive_inventory(options, cache)).archive();
}

}  // namespace welkin::data
