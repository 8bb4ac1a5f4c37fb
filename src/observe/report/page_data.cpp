// SPDX-License-Identifier: Apache-2.0
#include "observe/report/page_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "core/text.h"
#include "observe/plot/markup.h"
#include "observe/report/run_phases.h"
#include "observe/report/run_table.h"
#include "observe/report/thin_curve.h"

namespace welkin::observe {
namespace {

using Json = nlohmann::ordered_json;

// Limits that keep a page below 10 MB of numbers and drawn in well under two seconds.
constexpr size_t kMostPoints = 250000, kMostOfCurve = 2000, kLeastOfCurve = 100;
constexpr size_t kMostPictureBytes = size_t{12} << 20;
constexpr size_t kMostPhases = 200;

std::string json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Numbers as short as possible without loss; those of event files are float32. Not finite: null.
void add_number(std::string& out, double value) {
  std::array<char, 32> text{};
  const auto narrow = static_cast<float>(value);
  const bool is_narrow = static_cast<double>(narrow) == value;
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const auto end = is_narrow ? std::to_chars(text.data(), text.data() + text.size(), narrow)
                             : std::to_chars(text.data(), text.data() + text.size(), value);
  out.append(text.data(), end.ptr);
}

template <typename Value>
void add_list(std::string& out, const char* name, std::span<const ScalarPoint> points, Value value) {
  out += cat("\"", name, "\":[");
  for (size_t i = 0; i < points.size(); ++i) {
    if (i > 0) out += ',';
    add_number(out, value(points[i]));
  }
  out += ']';
}

// {"n": number of all points, "step": [...], "time": [...], "value": [...]}
void add_curve(std::string& out, const std::vector<ScalarPoint>& points, double start, size_t most) {
  constexpr double kPerSecond = 1000;
  const std::vector<ScalarPoint> kept = thinned(points, most);
  out += cat("{\"n\":", points.size(), ",");
  add_list(out, "step", kept, [](const ScalarPoint& point) { return static_cast<double>(point.step); });
  out += ',';
  add_list(out, "time", kept,
           [&](const ScalarPoint& point) { return std::round((point.wall_time - start) * kPerSecond) / kPerSecond; });
  out += ',';
  add_list(out, "value", kept, [](const ScalarPoint& point) { return point.value; });
  out += '}';
}

size_t points_of_curve(const std::vector<RunHistory>& runs) {
  size_t curves = 1;
  for (const RunHistory& run : runs) curves += run.scalars.by_tag.size();
  return std::clamp(kMostPoints / curves, kLeastOfCurve, kMostOfCurve);
}

// Number of pictures per tag of a run that fit; the newest are always kept.
size_t pictures_of_tag(const std::vector<RunHistory>& runs) {
  size_t bytes = 0, most = 1;
  for (const RunHistory& run : runs) {
    for (const auto& [tag, pictures] : run.scalars.pictures) {
      for (const EventPicture& picture : pictures) bytes += picture.png.size();
      most = std::max(most, pictures.size());
    }
  }
  if (bytes <= kMostPictureBytes) return most;
  return std::max<size_t>(static_cast<size_t>(static_cast<double>(most) * kMostPictureBytes / static_cast<double>(bytes)), 1);
}

Json pictures_of(const RunHistory& run, size_t most, size_t& bytes_left) {
  Json tags = Json::object();
  for (const auto& [tag, pictures] : run.scalars.pictures) {
    Json shown = Json::array();
    const size_t count = std::min(most, pictures.size());
    for (size_t i = 0; i < count; ++i) {
      const EventPicture& picture = pictures[count == 1 ? pictures.size() - 1 : i * (pictures.size() - 1) / (count - 1)];
      if (picture.png.size() > bytes_left) continue;
      bytes_left -= picture.png.size();
      shown.push_back({{"step", picture.step}, {"png", base64(picture.png)}});
    }
    if (!shown.empty()) tags[tag] = std::move(shown);
  }
  return tags;
}

Json events_of(const RunHistory& run) {
  Json events = Json::array();
  for (const RunEvent& event : run.facts.events) {
    const double seconds = event.wall_time > 0 ? event.wall_time - run.scalars.first_wall_time : 0;
    events.push_back({event.wall_time, seconds, event.name, event.step, event.rank, event.text});
  }
  return events;
}

Json phases_of(const RunHistory& run) {
  const RunPhases phases = run_phases(run, kMostPhases);
  Json shown = Json::array();
  for (const RunPhase& phase : phases.shown) shown.push_back({phase.begin, phase.end, phase.is_training ? 0 : 1});
  return {{"training_s", phases.training_s}, {"validation_s", phases.validation_s}, {"shown", std::move(shown)}};
}

Json environment_of(const RunHistory& run) {
  Json facts = Json::object();
  for (const auto& [name, value] : run.facts.environment) facts[name] = value;
  return facts;
}

Json configuration_of(const RunHistory& run, const std::vector<std::string>& keys) {
  Json values = Json::array();
  for (const std::string& key : keys) {
    const auto found = run.facts.configuration.find(key);
    values.push_back(found == run.facts.configuration.end() ? Json() : Json(found->second));
  }
  return values;
}

Json scores_of(const std::vector<ScoreSeries>& all) {
  Json rows = Json::array();
  const auto list = [](const std::vector<double>& values) {
    Json numbers = Json::array();
    for (const double value : values) numbers.push_back(std::isfinite(value) ? Json(value) : Json());
    return numbers;
  };
  for (const ScoreSeries& series : all) {
    rows.push_back({{"source", series.source},
                    {"forecast", series.forecast},
                    {"channel", series.channel},
                    {"score", series.score},
                    {"place", series.place},
                    {"unit", series.lead_unit},
                    {"leads", list(series.leads)},
                    {"values", list(series.values)},
                    {"low", list(series.low)},
                    {"high", list(series.high)}});
  }
  return rows;
}

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// Data of a run except its curves, without the closing brace.
std::string run_text(const RunHistory& run, const RunFigures& figures, const std::vector<std::string>& keys, size_t most_pictures,
                     size_t& bytes_left) {
  const Json json = {{"label", run.label},
                     {"batch", optional_json(run.global_batch)},
                     {"seconds", std::isfinite(figures.seconds) ? figures.seconds : 0},
                     {"state", run.facts.state},
                     {"configuration", configuration_of(run, keys)},
                     {"environment", environment_of(run)},
                     {"num_events", run.facts.num_events},
                     {"events", events_of(run)},
                     {"phases", phases_of(run)},
                     {"pictures", pictures_of(run, most_pictures, bytes_left)}};
  std::string text = json_text(json);
  text.pop_back();
  return text;
}

// Escapes <, > and &. They occur in no number and none of our keys, so only within strings.
std::string without_markup(const std::string& json) {
  std::string out;
  out.reserve(json.size() + json.size() / 100);
  for (const char letter : json) {
    if (letter == '<') {
      out += "\\u003c";
    } else if (letter == '>') {
      out += "\\u003e";
    } else if (letter == '&') {
      out += "\\u0026";
    } else {
      out += letter;
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> differing_keys(const std::vector<RunHistory>& runs) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, size_t> said;
  size_t speaking = 0;
  for (const RunHistory& run : runs) {
    speaking += run.facts.configuration.empty() ? 0 : 1;
    for (const auto& [key, value] : run.facts.configuration) values[key].insert(value), ++said[key];
  }
  std::vector<std::string> keys;
  for (const auto& [key, different] : values) {
    if (different.size() > 1 || (said[key] != speaking && speaking > 1)) keys.push_back(key);
  }
  return keys;
}

std::string page_data(const RunComparison& comparison, const std::vector<RunHistory>& runs, const PageOptions& options) {
  const std::vector<std::string> keys = differing_keys(runs);
  const size_t most_points = points_of_curve(runs), most_pictures = pictures_of_tag(runs);
  size_t bytes_left = kMostPictureBytes;
  Json head = {{"score", comparison.score},
               {"target_line", target_line(comparison)},
               {"made", options.made},
               {"live", options.live},
               {"columns", run_columns()},
               {"rows", run_rows(comparison)},
               {"keys", keys},
               {"scores", scores_of(options.scores)}};
  std::string text = json_text(head);
  text.back() = ',';
  text += "\"runs\":[";
  for (size_t i = 0; i < runs.size(); ++i) {
    text += cat(i > 0 ? ",\n" : "\n", run_text(runs[i], comparison.runs[i], keys, most_pictures, bytes_left), ",\"curves\":{");
    bool is_first = true;
    for (const auto& [tag, points] : runs[i].scalars.by_tag) {
      if (points.empty()) continue;
      text += cat(is_first ? "" : ",", json_text(Json(tag)), ":");
      add_curve(text, points, runs[i].scalars.first_wall_time, most_points);
      is_first = false;
    }
    text += "}}";
  }
  return without_markup(text + "]}");
}

}  // namespace welkin::observe
