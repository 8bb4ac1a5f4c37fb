// SPDX-License-Identifier: Apache-2.0
#include "train/interchange/sample_spec_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/archive/json_integers.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::train::interchange {
namespace {

using SpecJson = nlohmann::ordered_json;

// One list of fields for reading and writing: `visit` is called with each name and field.
template <typename Spec, typename Visit>
void visit_fields(Spec& spec, const Visit& visit) {
  visit("latitude", spec.latitude);
  visit("longitude", spec.longitude);
  visit("input_mean", spec.input_mean);
  visit("input_std", spec.input_std);
  visit("target_mean", spec.target_mean);
  visit("target_std", spec.target_std);
  visit("input_clip", spec.input_clip);
  visit("target_clip", spec.target_clip);
  visit("input_log", spec.input_log);
  visit("target_log", spec.target_log);
  visit("input_log_eps", spec.input_log_eps);
  visit("target_log_eps", spec.target_log_eps);
  visit("input_vectors", spec.input_vectors);
  visit("target_vectors", spec.target_vectors);
  visit("input_fill", spec.input_fill);
  visit("has_missing", spec.has_missing);
  visit("has_holes", spec.has_holes);
  visit("newest_input_channel", spec.newest_input_channel);
  visit("earlier_target", spec.earlier_target);
  visit("known_input", spec.known_input);
  visit("first_cell", spec.first_cell);
  visit("columns_around", spec.columns_around);
  visit("target_of_file", spec.target_of_file);
}

[[noreturn]] void refuse_spec(const SpecSource& source, const std::string& reason) {
  throw DataError(source.component, cat("the specification of the data is damaged: path=", source.path, ", reason=", reason),
                  source.remedy);
}

template <typename T>
void take(const SpecJson& value, T& field, const SpecSource& source) {
  if (!has_integers_of<T>(value)) refuse_spec(source, "an integer was expected");
  value.get_to(field);
}

SpecJson array_json(const data::ArraySpec& array) {
  SpecJson scaling = SpecJson::array();
  for (const data::ChannelScaling& one : array.scaling)
    scaling.push_back({{"transform", one.transform}, {"offset", one.offset}, {"scale", one.scale}});
  return {{"channels", array.channels}, {"units", array.units}, {"shape", array.shape}, {"scaling", scaling}};
}

data::ArraySpec array_from(const SpecJson& json, const SpecSource& source) {
  data::ArraySpec array;
  json.at("channels").get_to(array.channels);
  json.at("units").get_to(array.units);
  take(json.at("shape"), array.shape, source);
  for (const SpecJson& one : json.at("scaling")) {
    array.scaling.push_back({.transform = one.at("transform").get<std::string>(),
                             .offset = one.at("offset").get<double>(),
                             .scale = one.at("scale").get<double>()});
  }
  return array;
}

bool is_length(size_t length, size_t channels) { return length == 0 || length == channels; }

// Checks the invariants on which users of a specification rely. Empty: nothing is wrong.
std::string spec_problem(const data::ArraySpec& array, const std::vector<double>& mean, const std::vector<double>& deviation,
                         const std::vector<double>& clip, const std::vector<int64_t>& logs, const std::vector<double>& eps) {
  constexpr int64_t kMostPoints = int64_t{1} << 40;
  const size_t channels = array.channels.size();
  if (array.shape.size() < 3 || array.shape.size() > 4 || channels == 0) return "shape";
  int64_t points = 1;
  for (const int64_t edge : array.shape) {
    if (edge < 1 || edge > kMostPoints / points) return "shape";
    points *= edge;
  }
  if (array.shape.front() != static_cast<int64_t>(channels)) return "channels";
  if (!is_length(array.units.size(), channels) || !is_length(array.scaling.size(), channels)) return "units";
  if (!is_length(mean.size(), channels) || deviation.size() != mean.size()) return "means and deviations";
  if (!std::ranges::all_of(mean, [](double value) { return std::isfinite(value); })) return "a mean that is not finite";
  if (!std::ranges::all_of(deviation, [](double value) { return std::isfinite(value) && value > 0; }))
    return "a deviation that is not positive";
  if (!clip.empty() && clip.size() != 2) return "clip";
  if (!is_length(eps.size(), logs.size())) return "log_eps";
  if (!std::ranges::all_of(eps, [](double value) { return static_cast<float>(value) > 0 && std::isfinite(value); }))
    return "log_eps";
  for (const int64_t channel : logs) {
    if (channel < 0 || channel >= static_cast<int64_t>(channels)) return "log";
  }
  return {};
}

std::string problem_of(const data::SampleSpec& spec) {
  const std::string input =
      spec_problem(spec.input, spec.input_mean, spec.input_std, spec.input_clip, spec.input_log, spec.input_log_eps);
  if (!input.empty()) return cat("input: ", input);
  const std::string target =
      spec_problem(spec.target, spec.target_mean, spec.target_std, spec.target_clip, spec.target_log, spec.target_log_eps);
  if (!target.empty()) return cat("target: ", target);
  const int64_t channels = spec.input.shape.front();
  if (spec.newest_input_channel < 0 || spec.newest_input_channel >= channels) return "newest_input_channel";
  if (!is_length(spec.earlier_target.size(), spec.target.channels.size())) return "earlier_target";
  for (const int64_t channel : spec.earlier_target) {
    if (channel < -1 || channel >= channels) return "earlier_target";
  }
  if (!is_length(spec.latitude.size(), static_cast<size_t>(spec.input.shape.at(1)))) return "latitude";
  return {};
}

}  // namespace

std::string sample_spec_json(const data::SampleSpec& spec) {
  SpecJson json = {
      {"input", array_json(spec.input)}, {"target", array_json(spec.target)}, {"geometry", static_cast<int>(spec.geometry)}};
  visit_fields(spec, [&](const char* name, const auto& field) { json[name] = field; });
  json["lead_hours"] = spec.lead_hours;
  return json.dump(-1, ' ', false, SpecJson::error_handler_t::replace);
}

data::SampleSpec sample_spec_from_json(std::string_view text, const SpecSource& source) {
  data::SampleSpec spec;
  try {
    // The text is copied while it is read, by functions that recurse once per level.
    constexpr int kDeepest = 8;
    const auto limit = [&source](int depth, SpecJson::parse_event_t /*event*/, const SpecJson& /*value*/) {
      if (depth > kDeepest) refuse_spec(source, "nested too deeply");
      return true;
    };
    const SpecJson json = SpecJson::parse(text, limit);
    spec.input = array_from(json.at("input"), source);
    spec.target = array_from(json.at("target"), source);
    int geometry = 0;
    take(json.at("geometry"), geometry, source);
    if (geometry < 0 || geometry > static_cast<int>(data::Geometry::PeriodicBox)) refuse_spec(source, "geometry");
    spec.geometry = static_cast<data::Geometry>(geometry);
    visit_fields(spec, [&](const char* name, auto& field) { take(json.at(name), field, source); });
    if (json.contains("lead_hours")) json["lead_hours"].get_to(spec.lead_hours);  // earlier versions did not write it
  } catch (const SpecJson::exception& error) {
    refuse_spec(source, error.what());
  }
  if (const std::string problem = problem_of(spec); !problem.empty()) refuse_spec(source, problem);
  return spec;
}

}  // namespace welkin::train::interchange
