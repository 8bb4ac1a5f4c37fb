// SPDX-License-Identifier: Apache-2.0
// A folder of training files, or of files to be ingested: one row each.
#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/printable.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data/datasets/doubled_times.h"
#include "data/datasets/field_file.h"
#include "data/formats/array_file.h"
#include "data/tools/inspect_fields.h"
#include "observe/log/table.h"

namespace welkin::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 1000;

struct FolderRow {
  std::string format, variables, problem;
  std::set<int64_t> times;
  Calendar calendar = Calendar::ProlepticGregorian;
  std::optional<FieldFacts> training = {};
};

// A few names, and the number of the others.
std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  std::vector<std::string> shown;
  for (const auto& name : names) {
    if (shown.size() < kShown) shown.push_back(printable(name));
  }
  return cat(join(shown, " "), names.size() > kShown ? cat(" and ", names.size() - kShown, " more") : "");
}

FolderRow row_of_training_file(const fs::path& path) {
  const FieldFile file(path);
  const FieldFacts& facts = file.facts();
  FolderRow row{.format = "training file", .variables = names_text(facts.channel_names), .problem = {}, .times = {}};
  if (facts.channel_names.empty()) row.variables = cat(facts.channels, " channels");
  row.times.insert(facts.time.begin(), facts.time.end());
  row.calendar = parse_calendar(facts.calendar);
  row.training = facts;
  return row;
}

FolderRow row_of_arrays(const ArrayFile& file) {
  std::vector<std::string> names;
  for (const auto& [name, array] : file.arrays) names.push_back(cat(name, extents_text(array->facts().shape)));
  return {.format = file.format, .variables = names_text(names), .problem = {}, .times = {}};
}

class FolderReading {
 public:
  explicit FolderReading(CheckHelper helper) : helper_(std::move(helper)) {}
  // Nullopt for a file that is no data.
  std::optional<FolderRow> row(const fs::directory_entry& entry) {
    try {
      return read(entry);
    } catch (const Error& error) {
      return FolderRow{.format = "", .variables = "", .problem = printable(error.what()), .times = {}};
    } catch (const fs::filesystem_error& error) {
      return FolderRow{.format = "", .variables = "", .problem = printable(error.what()), .times = {}};
    }
  }

 private:
  std::optional<FolderRow> read(const fs::directory_entry& entry) {
    const fs::path& path = entry.path();
    if (entry.is_regular_file()) {
      const ingest::Format format = ingest::format_of_file(path);
      if (format == ingest::Format::Grib || format == ingest::Format::Netcdf3) return row_of_fields(path);
      if (format == ingest::Format::Unknown && array_format_of(path) == ArrayFormat::Unknown) return std::nullopt;
    } else if (!entry.is_directory() || array_format_of(path) == ArrayFormat::Unknown) {
      return std::nullopt;
    }
    const ArrayFile arrays = open_array_file(path);
    if (arrays.has("fields") && arrays.array("fields")->facts().shape.size() == 4) return row_of_training_file(path);
    const bool is_netcdf = std::ranges::any_of(arrays.attributes, [&](const auto& object) {
      return arrays.texts(object.first, "CLASS") == std::vector<std::string>{"DIMENSION_SCALE"};
    });
    return is_netcdf ? row_of_fields(path) : row_of_arrays(arrays);
  }

  FolderRow row_of_fields(const fs::path& path) {
    if (!component_) component_.emplace(fs::path(), helper_);
    const auto inventory = inventory_of(*component_, path);
    FolderRow row{.format = std::string(name_of(inventory.files.front().format)), .variables = {}, .problem = {}, .times = {}};
    std::vector<std::string> names;
    for (const auto& variable : inventory.variables) {
      if (std::ranges::find(names, variable.name) == names.end()) names.push_back(variable.name);
      if (variable.has_time) row.calendar = variable.calendar;
    }
    row.variables = names.empty() ? "no fields" : names_text(names);
    for (const auto& field : inventory.fields) {
      if (inventory.variables[static_cast<size_t>(field.variable)].has_time) row.times.insert(field.time);
    }
    return row;
  }

  CheckHelper helper_;
  std::optional<ingest::Component> component_;
};

std::string file_times(const FolderRow& row) {
  return row.times.empty() ? "" : times_text({row.times.begin(), row.times.end()}, row.calendar);
}

}  // namespace

std::string inspect_folder(const fs::path& folder, const InspectOptions& options) {
  std::vector<fs::directory_entry> entries(fs::directory_iterator(folder), fs::directory_iterator{});
  std::ranges::sort(entries, {}, [](const auto& entry) { return entry.path(); });
  observe::Table table({{"file"}, {"format"}, {"bytes", observe::Align::Right}, {"variables"}, {"times"}});
  FolderReading reading(options.helper);
  std::map<Calendar, std::set<int64_t>> times;
  std::list<FieldFacts> training;  // its places stay
  size_t rows = 0, others = 0;
  for (const auto& entry : entries) {
    const auto row = rows < kMostFiles ? reading.row(entry) : std::nullopt;
    if (!row) {
      ++others;
      continue;
    }
    ++rows;
    if (row->training) training.push_back(*row->training);
    times[row->calendar].insert(row->times.begin(), row->times.end());
    table.add_row({printable(entry.path().filename().string()), row->format,
                   entry.is_regular_file() ? format_bytes(entry.file_size()) : "", row->variables,
                   row->problem.empty() ? file_times(*row) : cat("cannot be read: ", row->problem)});
  }
  std::string text = cat("folder, ", rows, " files of data, ", others, " other entries\n");
  if (rows > 0) text += table.text();
  for (const auto& [calendar, all] : times) {
    if (!all.empty() && rows > 1) text += cat("times of all files: ", times_text({all.begin(), all.end()}, calendar), "\n");
  }
  std::vector<const FieldFacts*> all;
  for (const auto& facts : training) all.push_back(&facts);
  if (const std::string doubled = doubled_times_text(all); !doubled.empty()) text += cat("warning: ", doubled, "\n");
  return text;
}

}  // namespace welkin::data
