// SPDX-License-Identifier: Apache-2.0
#include "observe/report/score_file.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "observe/report/labelled_path.h"
#include "observe/report/shallow_json.h"

namespace welkin::observe {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostSeries = 20000;

double number_of(const Json& value) { return value.is_number() ? value.get<double>() : std::nan(""); }

double number_at(const Json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() ? number_of(*found) : std::nan("");
}

std::vector<double> numbers_of(const Json& row, const char* name) {
  std::vector<double> numbers;
  if (const auto found = row.find(name); found != row.end() && found->is_array()) {
    for (const Json& value : *found) numbers.push_back(number_of(value));
  }
  return numbers;
}

std::string word_of(const Json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string with_unit(const std::string& score, const std::string& unit) {
  return unit.empty() ? score : cat(score, " [", unit, "]");
}

bool has_no_unit(const std::string& score) { return score == "acc" || score == "spread_skill" || score == "small_scales"; }

// {"lead_hours" or "lead_steps", "channels": {name: unit}, "scores": [{forecast, channel, region, season, score, values, low,
// high}]}
void add_forecast_scores(const Json& root, const std::string& source, std::vector<ScoreSeries>& all) {
  const bool has_hours = root.contains("lead_hours");  // otherwise monthly steps
  const std::vector<double> leads = numbers_of(root, has_hours ? "lead_hours" : "lead_steps");
  const auto rows = root.find("scores");
  if (rows == root.end() || !rows->is_array()) return;
  for (const Json& row : *rows) {
    if (!row.is_object() || all.size() >= kMostSeries) continue;
    ScoreSeries series{.source = source, .forecast = word_of(row, "forecast"), .channel = word_of(row, "channel")};
    const std::string score = word_of(row, "score");
    const auto channels = root.find("channels");
    const std::string unit = channels != root.end() && channels->is_object() ? word_of(*channels, series.channel.c_str()) : "";
    series.score = has_no_unit(score) ? score : with_unit(score, unit);
    series.place = cat(word_of(row, "region"), ", ", word_of(row, "season"));
    series.lead_unit = has_hours ? "hours" : "steps";
    series.leads = leads;
    series.values = numbers_of(row, "values"), series.low = numbers_of(row, "low"), series.high = numbers_of(row, "high");
    if (series.values.size() == leads.size()) all.push_back(std::move(series));
  }
}

// The series with these names, created if absent, to which a lead is added.
ScoreSeries& series_of(std::vector<ScoreSeries>& all, size_t begin, const ScoreSeries& like) {
  for (size_t i = begin; i < all.size(); ++i) {
    if (all[i].forecast == like.forecast && all[i].channel == like.channel && all[i].score == like.score) return all[i];
  }
  return all.emplace_back(like);
}

// {"channels": {name: {"unit", forecast: {"rmse", ...}}}}
void add_channel_scores(const Json& root, double lead, const std::string& source, size_t begin, std::vector<ScoreSeries>& all) {
  constexpr std::array<std::pair<const char*, bool>, 5> kShown{
      {{"rmse", false}, {"rmse_physical", true}, {"mae_physical", true}, {"bias_physical", true}, {"acc", false}}};
  const auto channels = root.find("channels");
  if (channels == root.end() || !channels->is_object()) return;
  for (const auto& [channel, forecasts] : channels->items()) {
    if (!forecasts.is_object()) continue;
    const std::string unit = word_of(forecasts, "unit");
    for (const auto& [forecast, scores] : forecasts.items()) {
      if (!scores.is_object() || !scores.contains("rmse")) continue;
      for (const auto& [score, has_unit] : kShown) {
        const auto value = scores.find(score);
        if (value == scores.end() || !value->is_number() || all.size() >= kMostSeries) continue;
        ScoreSeries& series = series_of(all, begin,
                                        {.source = source,
                                         .forecast = forecast,
                                         .channel = channel,
                                         .score = has_unit ? with_unit(score, unit) : std::string(score),
                                         .lead_unit = "steps"});
        series.leads.push_back(lead), series.values.push_back(value->get<double>());
      }
    }
  }
}

}  // namespace

std::vector<ScoreSeries> scores_of(std::string_view text, const std::string& source) {
  const Json root = shallow_json(text);
  std::vector<ScoreSeries> all;
  if (!root.is_object()) return all;
  add_forecast_scores(root, source, all);
  if (all.empty()) add_channel_scores(root, 1, source, 0, all);
  if (const auto leads = root.find("leads"); leads != root.end() && leads->is_array()) {
    for (const Json& lead : *leads) {
      if (lead.is_object()) add_channel_scores(lead, number_at(lead, "lead"), source, 0, all);
    }
  }
  return all;
}

std::vector<ScoreSeries> read_scores(const std::string& argument) {
  constexpr uint64_t kLargestScoreFile = uint64_t{1} << 28;
  const LabelledPath given = parse_labelled_path(argument);
  const std::string source = given.label.empty() ? given.path.filename().string() : given.label;
  std::vector<ScoreSeries> all = scores_of(read_file(given.path, kLargestScoreFile), source);
  if (!all.empty()) return all;
  throw DataError("report", cat("no scores in this file: path=", given.path.string()),
                  "Give what welkin evaluate --json FILE has written");
}

}  // namespace welkin::observe
