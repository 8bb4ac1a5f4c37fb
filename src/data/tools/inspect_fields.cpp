// SPDX-License-Identifier: Apache-2.0
#include "data/tools/inspect_fields.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/printable.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data/formats/array_file.h"
#include "data/ingest/time_axis.h"
#include "data/tools/inspect_hdf5.h"

namespace welkin::data {
namespace {

using ingest::Field;
using ingest::Inventory;
using ingest::Variable;

struct VariableFields {
  std::vector<double> levels;
  std::set<int32_t> members;
  std::set<int64_t> times;
  std::vector<const Field*> fields;
};

std::vector<VariableFields> by_variable(const Inventory& inventory) {
  std::vector<VariableFields> sorted(inventory.variables.size());
  for (const Field& field : inventory.fields) {
    VariableFields& mine = sorted[static_cast<size_t>(field.variable)];
    if (std::ranges::find(mine.levels, field.level) == mine.levels.end()) mine.levels.push_back(field.level);
    mine.members.insert(field.member);
    mine.times.insert(field.time);
    mine.fields.push_back(&field);
  }
  return sorted;
}

std::string coordinates_text(const ingest::Grid& grid) {
  return cat(grid.latitude.size(), "x", grid.longitude.size(), ", ", grid.latitude.front(), " to ", grid.latitude.back(), " N, ",
             grid.longitude.front(), " to ", grid.longitude.back(), " E");
}

// The range of values in a few evenly spread fields.
std::string field_range(ingest::Source& source, const Inventory& inventory, const std::vector<const Field*>& fields,
                        int64_t points, int64_t most_values) {
  if (points > most_values) return "not sampled: one field is too large";
  const auto count = std::clamp<int64_t>(most_values / points, 1, static_cast<int64_t>(fields.size()));
  std::vector<float> values(static_cast<size_t>(points));
  RunningMoments moments;
  for (int64_t i = 0; i < count; ++i) {
    const auto place = count == 1 ? 0 : (static_cast<int64_t>(fields.size()) - 1) * i / (count - 1);
    read_field(source, inventory, *fields[static_cast<size_t>(place)], values);
    moments.add(values);
  }
  return cat(count < static_cast<int64_t>(fields.size()) ? "of a sample: " : "", moments_text(moments));
}

std::string levels_line(const Variable& variable, const VariableFields& fields) {
  constexpr size_t kShown = 64;
  if (variable.level_kind == WELKIN_INGEST_LEVEL_NONE) return "";
  std::vector<double> shown = fields.levels;
  if (shown.size() > kShown) shown.resize(kShown);
  return cat("    levels ", printable(variable.level_type), ": ", join(shown, " "),
             shown.size() < fields.levels.size() ? " ..." : "", variable.level_kind == WELKIN_INGEST_LEVEL_HPA ? " hPa" : "",
             "\n");
}

std::string variable_lines(const Inventory& inventory, size_t index, const VariableFields& fields) {
  const Variable& variable = inventory.variables[index];
  std::string text = cat("  ", printable(variable.name));
  if (!variable.other_name.empty() && variable.other_name != variable.name)
    text += cat(" (", printable(variable.other_name), ")");
  if (!variable.units.empty()) text += cat(" [", printable(variable.units), "]");
  if (!variable.long_name.empty()) text += cat("  ", printable(variable.long_name));
  text += cat("\n    grid ", coordinates_text(inventory.grids[static_cast<size_t>(variable.grid)]), "\n");
  text += levels_line(variable, fields);
  if (fields.members.size() > 1) text += cat("    members: ", join(fields.members, " "), "\n");
  if (!variable.has_time) return text + "    no time\n";
  return text + cat("    times ", times_text({fields.times.begin(), fields.times.end()}, variable.calendar), "\n");
}

}  // namespace

std::string times_text(const std::vector<int64_t>& times, Calendar calendar) {
  if (times.empty()) return "none";
  std::string text = cat(times.size(), ", ", format_date(calendar, times.front()));
  if (times.size() < 2) return text;
  const auto step = ingest::find_step(times, calendar);
  const auto gaps = ingest::find_gaps(times, step, calendar);
  text += cat(" to ", format_date(calendar, times.back()), ", step ", ingest::describe(step));
  if (calendar != Calendar::ProlepticGregorian) text += cat(", calendar ", name_of(calendar));
  if (gaps.empty()) return text + ", no gaps";
  return text + cat(", gaps ", gaps.size(), " (first after ", format_date(calendar, gaps.front().after), ", missing ",
                    gaps.front().missing, ")");
}

FieldFormat field_format_of(const std::filesystem::path& path) {
  std::error_code absent;
  if (std::filesystem::is_directory(path, absent))
    return array_format_of(path) == ArrayFormat::Unknown ? FieldFormat::Folder : FieldFormat::None;
  if (!std::filesystem::is_regular_file(path, absent)) return FieldFormat::None;
  switch (ingest::format_of_file(path)) {
    case ingest::Format::Grib:
    case ingest::Format::Netcdf3:
      return FieldFormat::Fields;
    case ingest::Format::GenericIo:
      return FieldFormat::Particles;
    default:
      return FieldFormat::None;
  }
}

ingest::Inventory inventory_of(const ingest::Component& component, const std::filesystem::path& path) {
  return ingest::take_inventory(
      component, {{.path = path, .format = ingest::format_of_file(path), .bytes = std::filesystem::file_size(path), .xxh3 = 0}});
}

std::string inspect_fields(const std::filesystem::path& path, const InspectOptions& options) {
  const ingest::Component component({}, options.helper);
  const Inventory inventory = inventory_of(component, path);
  const auto sorted = by_variable(inventory);
  const ingest::InputFile& file = inventory.files.front();
  const auto source = component.open(path, file.format);
  std::string text = cat(name_of(file.format), ", ", format_bytes(file.bytes), ", ", inventory.variables.size(), " variables, ",
                         inventory.fields.size(), " fields, read with ", component.versions(), "\n");
  for (size_t v = 0; v < sorted.size() && static_cast<int64_t>(v) < options.most_datasets; ++v) {
    text += variable_lines(inventory, v, sorted[v]);
    const auto points = inventory.grids[static_cast<size_t>(inventory.variables[v].grid)].num_points();
    const auto budget = options.most_sampled_values / static_cast<int64_t>(sorted.size());
    text += cat("    values ", field_range(*source, inventory, sorted[v].fields, points, std::max(points, budget)), "\n");
  }
  for (const auto& out : inventory.left_out)
    text += cat("  ", printable(out.variable), "  no field: ", printable(out.reason), "\n");
  return text;
}

}  // namespace welkin::data
