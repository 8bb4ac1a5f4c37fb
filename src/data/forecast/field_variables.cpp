// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/field_variables.h"

#include "core/error.h"
#include "core/text.h"
#include "data/forecast/field_names.h"
#include "data/forecast/forecast_layout.h"
#include "data/formats/array_file.h"
#include "data/formats/formats.h"
#include "data/sample/likeness.h"

namespace welkin::data {

ArrayFile open_field_file(const std::filesystem::path& path) {
  return path.extension() == ".nc" && array_format_of(path) == ArrayFormat::Unknown ? open_netcdf_arrays(path)
                                                                                    : open_array_file(path);
}

void add_variable(FieldVariables& variables, const ArrayFile& file, const std::string& name, const StoredArrayPtr& ordered,
                  const std::vector<double>& levels) {
  const auto units = file.texts(name, "units");
  const std::string unit = units.empty() ? "" : units.front();
  if (levels.empty()) variables[name] = {.array = ordered, .unit = unit};
  for (size_t i = 0; i < levels.size(); ++i) {
    variables[name_of_level(name, levels[i])] = {.array = ordered, .level = static_cast<int64_t>(i), .unit = unit};
  }
}

GridTurn turn_onto(const SampleSpec& truth, const GridAxes& to, const GridAxes& from, int64_t height, int64_t width,
                   const ComparedFile& source) {
  const auto turn = GridTurn::onto(to, from);
  if (turn && height == truth.target.shape.at(1) && width == truth.target.shape.at(2)) return *turn;
  const std::string places = turn ? "" : cat(", ", difference_of_grids(to.latitude, to.longitude, from.latitude, from.longitude));
  throw DataError(source.component,
                  cat(source.subject, " is on another grid than the truth: path=", source.path, ", grid=", height, " x ", width,
                      ", truth=", truth.target.shape[1], " x ", truth.target.shape[2], places),
                  source.remedy_of_grid);
}

std::vector<std::string> name_as_channels(FieldVariables& variables, const SampleSpec& truth,
                                          const std::vector<std::string>& names, const ComparedFile& source) {
  std::vector<std::string> without_units;
  for (size_t c = 0; c < names.size(); ++c) {
    const std::string &channel = truth.target.channels.at(c), &unit = truth.target.units.at(c);
    std::string found = names[c];
    for (const std::string& other : names_of_channel(channel)) {
      if (!variables.contains(found) && variables.contains(other)) found = other;
    }
    if (!variables.contains(found)) continue;
    const FieldVariable variable = variables.at(found);
    if (!variable.unit.empty() && !is_unit_of(variable.unit, unit)) {
      throw DataError(source.component,
                      cat(source.subject, " has another unit than the truth: path=", source.path, ", variable=", found,
                          ", unit=", variable.unit, ", truth=", unit),
                      source.remedy_of_unit);
    }
    if (variable.unit.empty() && !unit.empty()) without_units.push_back(channel);
    variables[names[c]] = variable;
  }
  return without_units;
}

}  // namespace welkin::data
