// SPDX-License-Identifier: Apache-2.0
#include "data/cf/archive_inventory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "data/cf/archive_choice.h"
#include "data/cf/archive_files.h"
#include "data/cf/time_span.h"
#include "data/formats/array_file.h"
#include "data/sample/dataset.h"

namespace welkin::data {
namespace {

bool close_degrees(const std::vector<double>& one, const std::vector<double>& other) {
  constexpr double kSame = 1e-4;  // degrees: float32 has 7 digits
  return std::ranges::equal(one, other, [](double a, double b) { return std::abs(a - b) < kSame; });
}

class InventoryTaker {
 public:
  InventoryTaker(const ArchiveOptions& options, std::shared_ptr<ChunkCache> cache)
      : options_(options), cache_(std::move(cache)) {}

  ArchiveInventory take() {
    choose();
    find_pieces();
    make_channels();
    check_grids();
    find_times();
    check_times();
    return std::move(found_);
  }

 private:
  void choose() {
    for (const std::string& text : options_.variables) {
      requests_.push_back(parse_variable_request(text));
      const std::string& name = requests_.back().name;
      if (std::ranges::find(found_.variables, name, &ArchiveVariable::name) == found_.variables.end())
        found_.variables.push_back({.name = name, .others = requests_.back().others});
    }
  }

  // The first of a variable's names that the file has; empty where it has none.
  static std::string name_in(const ArrayFile& file, const ArchiveVariable& variable) {
    if (file.has(variable.name)) return variable.name;
    const auto found = std::ranges::find_if(variable.others, [&](const std::string& name) { return file.has(name); });
    return found == variable.others.end() ? "" : *found;
  }

  void find_pieces() {
    std::set<std::string> there;
    for (const auto& path : archive_files(options_.path)) {
      const ArrayFile file = open_array_file(path, cache_);
      VariableReader reader(file, options_.time_keys);
      bool has_any = false;
      for (ArchiveVariable& variable : found_.variables) {
        const std::string name = name_in(file, variable);
        if (name.empty()) continue;
        variable.pieces.push_back({path, reader.read(name)});
        has_any = true;
      }
      if (has_any) found_.files.push_back(path);
      for (const auto& [name, array] : file.arrays) {
        if (array->facts().shape.size() >= 2) there.insert(name);
      }
    }
    for (const ArchiveVariable& variable : found_.variables) {
      if (!variable.pieces.empty()) continue;
      const std::vector<std::string> names(there.begin(), there.end());
      const auto close = nearest(variable.name, names);
      throw ConfigError(
          "data", cat("the archive has no such variable: variables=", variable.name, ", path=", options_.path.string()),
          close.empty() ? cat("There are: ", join(names, ", ").substr(0, 1000)) : cat("Did you mean: ", join(close, ", ")));
    }
  }

  void make_channels() {
    std::set<std::string> names;
    for (const VariableRequest& request : requests_) {
      const auto found = std::ranges::find(found_.variables, request.name, &ArchiveVariable::name);
      const auto index = static_cast<size_t>(found - found_.variables.begin());
      const FileVariable& first = found->first();
      for (const VariablePiece& piece : found->pieces) check_like_first(*found, piece);
      const std::string& name = request.new_name.empty() ? request.name : request.new_name;
      if (!first.has_level) {
        if (request.level) refuse_level(request, first, *request.level);
        found_.channels.push_back({index, 0, name});
      }
      for (const double level : wanted_levels(request, first)) {
        const auto at = level_index(first.levels, level);
        if (!at) refuse_level(request, first, level);
        const bool renames_one = request.level && !request.new_name.empty();
        found_.channels.push_back(
            {index, *at, renames_one ? name : level_channel_name(name, level, first.on_pressure, first.levels.size())});
      }
    }
    for (const ArchiveChannel& channel : found_.channels) {
      if (names.insert(channel.name).second) continue;
      throw ConfigError("data", cat("a channel is named twice: channel=", channel.name), "Name each variable and level once");
    }
  }

  std::vector<double> wanted_levels(const VariableRequest& request, const FileVariable& variable) const {
    if (!variable.has_level) return {};
    if (request.level) return {*request.level};
    return options_.levels.empty() || variable.levels.size() == 1 ? variable.levels : options_.levels;
  }

  [[noreturn]] void refuse_level(const VariableRequest& request, const FileVariable& variable, double level) const {
    throw ConfigError(
        "data",
        cat("the variable has no such level: variable=", request.name, ", level=", level_text(level),
            ", path=", options_.path.string()),
        variable.has_level ? cat("Choose from: ", levels_text(variable.levels)) : "It has no levels: leave out the @");
  }

  // Files of one variable.
  static void check_like_first(const ArchiveVariable& all, const VariablePiece& piece) {
    const FileVariable &first = all.first(), &other = piece.variable;
    std::string difference;
    if (first.has_time != other.has_time) {
      difference = cat("times: ", first.has_time ? "some" : "none", " and ", other.has_time ? "some" : "none");
    } else if (first.levels != other.levels) {
      difference = cat("levels: ", levels_text(first.levels), " and ", levels_text(other.levels));
    } else if (first.units.empty() != other.units.empty() || !may_be_same_unit(first.units, other.units)) {
      difference = cat("units: ", first.units, " and ", other.units);
    }
    if (difference.empty()) return;
    throw DataError("data",
                    cat("files of one variable differ: variable=", all.name, ", in=", difference,
                        ", path=", all.pieces.front().path.string(), ", path=", piece.path.string()),
                    "Name a folder that holds one data set");
  }

  void check_grids() {
    for (const ArchiveVariable& variable : found_.variables) {
      for (const VariablePiece& piece : variable.pieces) {
        const FileVariable& other = piece.variable;
        if (close_degrees(found_.grid().latitude, other.latitude) && close_degrees(found_.grid().longitude, other.longitude))
          continue;
        throw DataError("data",
                        cat("variables lie on different grids: variable=", found_.variables.front().name,
                            ", path=", found_.variables.front().pieces.front().path.string(), ", variable=", variable.name,
                            ", path=", piece.path.string()),
                        "Choose variables of one grid, or bring all onto a new one with welkin data ingest --grid");
      }
    }
  }

  void find_times() {
    const FileVariable* timed = nullptr;
    for (const ArchiveVariable& variable : found_.variables) {
      for (const VariablePiece& piece : variable.pieces) {
        if (!piece.variable.has_time) continue;
        if (timed == nullptr) timed = &piece.variable;
        if (written_calendar(piece.variable.times->calendar) == written_calendar(timed->times->calendar)) continue;
        throw DataError("data",
                        cat("files have different calendars: path=", piece.path.string(),
                            ", calendar=", name_of(piece.variable.times->calendar), ", before=", name_of(timed->times->calendar)),
                        "Name a folder that holds one data set");
      }
    }
    if (timed == nullptr) {
      throw ConfigError("data", cat("no variable has a time: path=", options_.path.string()), "Choose at least one that has");
    }
    found_.calendar = written_calendar(timed->times->calendar);
    const TimeSpan span = time_span(options_.times, found_.calendar, options_.times_key);
    for (ArchiveVariable& variable : found_.variables) add_places(variable, span);
  }

  void add_places(ArchiveVariable& variable, const TimeSpan& span) const {
    if (!variable.first().has_time) {
      if (variable.pieces.size() == 1) return;
      throw DataError("data",
                      cat("a variable without times occurs twice: variable=", variable.name,
                          ", path=", variable.pieces[0].path.string(), ", other=", variable.pieces[1].path.string()),
                      "Name a folder that holds one data set");
    }
    for (size_t piece = 0; piece < variable.pieces.size(); ++piece) {
      const auto& seconds = variable.pieces[piece].variable.times->seconds;
      for (size_t step = 0; step < seconds.size(); ++step) {
        if (span.holds(seconds[step])) variable.places.push_back({seconds[step], piece, static_cast<int64_t>(step)});
      }
    }
    std::ranges::stable_sort(variable.places, {}, &TimePlace::seconds);
    const auto twice = std::ranges::adjacent_find(variable.places, {}, &TimePlace::seconds);
    if (twice == variable.places.end()) return;
    throw DataError("data",
                    cat("a time occurs twice: variable=", variable.name, ", time=", format_date(found_.calendar, twice->seconds),
                        ", path=", variable.pieces[twice->piece].path.string(),
                        ", other=", variable.pieces[(twice + 1)->piece].path.string()),
                    "Name a folder that holds one data set, one member and one version of it");
  }

  // All variables must have the same times: nothing is left out silently.
  void check_times() {
    const auto has_time = [](const ArchiveVariable& variable) { return variable.first().has_time; };
    found_.timed = static_cast<size_t>(std::ranges::find_if(found_.variables, has_time) - found_.variables.begin());
    for (const ArchiveVariable& variable : found_.variables) {
      if (has_time(variable)) check_same_times(found_.variables[found_.timed], variable);
    }
    if (!found_.times().empty()) return;
    throw ConfigError("data",
                      cat("the archive has none of these times: path=", options_.path.string(), ", ", options_.times_key, "=[",
                          join(options_.times, ", "), "], ", span_of_files()),
                      "Choose times that it has");
  }

  void check_same_times(const ArchiveVariable& one, const ArchiveVariable& other) const {
    const auto [here, there] = std::ranges::mismatch(one.places, other.places, {}, &TimePlace::seconds, &TimePlace::seconds);
    if (here == one.places.end() && there == other.places.end()) return;
    const bool only_here = there == other.places.end() || (here != one.places.end() && here->seconds < there->seconds);
    throw DataError(
        "data",
        cat("variables have different times: time=", format_date(found_.calendar, (only_here ? here : there)->seconds),
            ", of variable=", only_here ? one.name : other.name, ", not of variable=", only_here ? other.name : one.name),
        cat("Choose times that both have with ", options_.times_key, ", or use welkin data ingest, which leaves others out"));
  }

  std::string span_of_files() const {
    int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
    for (const VariablePiece& piece : found_.variables[found_.timed].pieces) {
      for (const int64_t time : piece.variable.times->seconds) first = std::min(first, time), last = std::max(last, time);
    }
    return first > last ? "it has no times"
                        : cat("first=", format_date(found_.calendar, first), ", last=", format_date(found_.calendar, last));
  }

  const ArchiveOptions& options_;
  std::shared_ptr<ChunkCache> cache_;
  std::vector<VariableRequest> requests_;
  ArchiveInventory found_;
};

}  // namespace

ArchiveInventory take_archive_inventory(const ArchiveOptions& options, const std::shared_ptr<ChunkCache>& cache) {
  return InventoryTaker(options, cache).take();
}

}  // namespace welkin::data
