// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/scores_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "observe/log/table.h"

namespace welkin::train {
namespace {

constexpr const char* kTimeMean = "time mean";  // a forecast without anomaly has no correlation

// A dash if there is no number: the correlation of a forecast without anomaly, a ratio to a power of zero.
std::string fixed(double value) {
  if (!std::isfinite(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

std::string compact(double value) {
  if (!std::isfinite(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string label(const Scores& scores, size_t channel) {
  const std::string& unit = scores.units[channel];
  return unit.empty() ? scores.channels[channel] : cat(scores.channels[channel], " [", unit, "]");
}

// True if some points have no value.
bool has_holes(const Scores& scores) {
  return std::ranges::any_of(scores.points, [&](int64_t points) { return points != scores.all_points; });
}

std::string points_text(const Scores& scores, size_t channel) { return cat(scores.points[channel], " of ", scores.all_points); }

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

const ForecastScores* forecast_of(const Scores& scores, std::string_view name) {
  const auto found = std::ranges::find(scores.forecasts, name, &ForecastScores::name);
  return found == scores.forecasts.end() ? nullptr : &*found;
}

// True if the model is worse than a baseline.
bool loses(const Scores& scores, size_t channel) {
  const ForecastScores* persistence = forecast_of(scores, "persistence");
  return persistence != nullptr && scores.forecasts.front().channels[channel].rmse > persistence->channels[channel].rmse;
}

std::vector<std::string> losing_channels(const Scores& scores) {
  std::vector<std::string> channels;
  for (size_t c = 0; c < scores.channels.size(); ++c) {
    if (loses(scores, c)) channels.push_back(scores.channels[c]);
  }
  return channels;
}

nlohmann::ordered_json scores_tree(const Scores& scores) {
  nlohmann::ordered_json root;
  root["samples"] = scores.samples;
  root["loss"] = number(scores.loss);
  root["wavenumber"] = scores.wavenumber;
  for (const auto& forecast : scores.forecasts) root["rmse"][forecast.name] = number(forecast.rmse());
  if (forecast_of(scores, "persistence") != nullptr) root["worse_than_persistence"] = losing_channels(scores);
  for (size_t c = 0; c < scores.channels.size(); ++c) {
    nlohmann::ordered_json channel;
    channel["unit"] = scores.units[c];
    if (c < scores.points.size()) channel["points"] = {{"with_value", scores.points[c]}, {"all", scores.all_points}};
    if (c < scores.target_spectra.size()) channel["target_spectrum"] = scores.target_spectra[c];
    for (const auto& forecast : scores.forecasts) {
      const ChannelScore& score = forecast.channels[c];
      channel[forecast.name] = {{"rmse", number(score.rmse)},
                                {"mean_rmse", number(score.mean_rmse)},
                                {"rmse_physical", number(score.rmse_physical)},
                                {"mae_physical", number(score.mae_physical)},
                                {"bias_physical", number(score.bias_physical)},
                                {"small_scales", number(score.small_scales)},
                                {"spectrum", score.spectrum},
                                {"acc", number(score.acc)}};
    }
    root["channels"][scores.channels[c]] = std::move(channel);
  }
  return root;
}

}  // namespace

std::string scores_table(const Scores& scores) {
  using observe::Align;
  std::vector<observe::Column> columns{
      {"channel", Align::Left}, {"forecast", Align::Left}, {"RMSE", Align::Right}, {"RMSE in its unit", Align::Right},
      {"MAE", Align::Right},    {"bias", Align::Right},    {"ACC", Align::Right},  {"small scales", Align::Right}};
  const bool holes = has_holes(scores);
  if (holes) columns.push_back({"points", Align::Right});
  observe::Table table(columns);
  const auto add_row = [&](std::vector<std::string> row, const std::string& points) {
    if (holes) row.push_back(points);
    table.add_row(row);
  };
  for (size_t c = 0; c < scores.channels.size(); ++c) {
    for (const auto& forecast : scores.forecasts) {
      const ChannelScore& score = forecast.channels[c];
      const bool is_marked = &forecast == &scores.forecasts.front() && loses(scores, c);
      add_row({label(scores, c), forecast.name + (is_marked ? " *" : ""), fixed(score.rmse), compact(score.rmse_physical),
               compact(score.mae_physical), compact(score.bias_physical), fixed(score.acc), fixed(score.small_scales)},
              holes ? points_text(scores, c) : "");
    }
  }
  for (const auto& forecast : scores.forecasts) add_row({"all", forecast.name, fixed(forecast.rmse()), "", "", "", "", ""}, "");
  const size_t losing = losing_channels(scores).size();
  const std::string legend =
      losing == 0 ? "" : cat("* worse than persistence: ", losing, " of ", scores.channels.size(), " channels\n");
  const std::string of_all = scores.scored < scores.samples ? cat(" that have points, of ", scores.samples) : "";
  return cat(table.text(), legend, "loss ", fixed(scores.loss), " over ", scores.scored, " samples", of_all, "\n");
}

std::string rollout_table(const std::vector<Scores>& leads) {
  using observe::Align;
  const Scores& first = leads.front();
  std::vector<observe::Column> columns = {{"channel", Align::Left}, {"lead", Align::Right}};
  for (const auto& forecast : first.forecasts) columns.push_back({cat("RMSE ", forecast.name), Align::Right});
  for (const auto& forecast : first.forecasts) {
    if (forecast.name != kTimeMean) columns.push_back({cat("ACC ", forecast.name), Align::Right});
  }
  const bool holes = has_holes(first);
  if (holes) columns.push_back({"points", Align::Right});
  observe::Table table(columns);
  bool any_marked = false;
  for (size_t c = 0; c <= first.channels.size(); ++c) {
    const bool all = c == first.channels.size();
    for (size_t i = 0; i < leads.size(); ++i) {
      std::vector<std::string> row = {all ? "all" : label(first, c), cat(i + 1)};
      const bool is_marked = !all && loses(leads[i], c);
      for (const auto& forecast : leads[i].forecasts) row.push_back(fixed(all ? forecast.rmse() : forecast.channels[c].rmse));
      if (is_marked) row[2].insert(0, "*");
      any_marked = any_marked || is_marked;
      for (const auto& forecast : leads[i].forecasts) {
        if (forecast.name != kTimeMean) row.push_back(all ? "" : fixed(forecast.channels[c].acc));
      }
      if (holes) row.push_back(all ? "" : points_text(leads[i], c));
      table.add_row(row);
    }
  }
  return cat(table.text(), any_marked ? "* worse than persistence\n" : "", "normalised, over ", first.samples, " starts\n");
}

std::string rollout_json(const std::vector<Scores>& leads) {
  nlohmann::ordered_json root;
  root["starts"] = leads.front().samples;
  for (size_t i = 0; i < leads.size(); ++i) {
    nlohmann::ordered_json lead = {{"lead", i + 1}};
    lead.update(scores_tree(leads[i]));
    root["leads"].push_back(std::move(lead));
  }
  return root.dump(2) + "\n";
}

std::string scores_json(const Scores& scores) { return scores_tree(scores).dump(2) + "\n"; }

}  // namespace welkin::train
