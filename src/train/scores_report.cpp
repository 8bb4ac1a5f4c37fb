// SPDX-License-Identifier: Apache-2.0
#include "train/scores_report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "observe/table.h"

namespace welkin::train {
namespace {

// A dash where there is no number: the correlation of a forecast without anomaly.
std::string fixed(double value) {
  if (!std::isfinite(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

std::string compact(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string label(const Scores& scores, size_t channel) {
  const std::string& unit = scores.units[channel];
  return unit.empty() ? scores.channels[channel] : cat(scores.channels[channel], " [", unit, "]");
}

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

}  // namespace

std::string scores_table(const Scores& scores) {
  using observe::Align;
  observe::Table table({{"channel", Align::Left},
                        {"forecast", Align::Left},
                        {"RMSE", Align::Right},
                        {"RMSE in its unit", Align::Right},
                        {"ACC", Align::Right}});
  for (size_t c = 0; c < scores.channels.size(); ++c) {
    for (const auto& forecast : scores.forecasts) {
      const ChannelScore& score = forecast.channels[c];
      table.add_row({label(scores, c), forecast.name, fixed(score.rmse), compact(score.rmse_physical), fixed(score.acc)});
    }
  }
  for (const auto& forecast : scores.forecasts) table.add_row({"all", forecast.name, fixed(forecast.rmse()), "", ""});
  return cat(table.text(), "loss ", fixed(scores.loss), " over ", scores.samples, " samples\n");
}

std::string scores_json(const Scores& scores) {
  nlohmann::ordered_json root;
  root["samples"] = scores.samples;
  root["loss"] = number(scores.loss);
  for (const auto& forecast : scores.forecasts) root["rmse"][forecast.name] = number(forecast.rmse());
  for (size_t c = 0; c < scores.channels.size(); ++c) {
    nlohmann::ordered_json channel;
    channel["unit"] = scores.units[c];
    for (const auto& forecast : scores.forecasts) {
      const ChannelScore& score = forecast.channels[c];
      channel[forecast.name] = {{"rmse", number(score.rmse)},
                                {"mean_rmse", number(score.mean_rmse)},
                                {"rmse_physical", number(score.rmse_physical)},
                                {"acc", number(score.acc)}};
    }
    root["channels"][scores.channels[c]] = std::move(channel);
  }
  return root.dump(2) + "\n";
}

}  // namespace welkin::train
