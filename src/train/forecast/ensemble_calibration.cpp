// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/ensemble_calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/forecast/field_names.h"
#include "data/forecast/forecast_layout.h"
#include "data/forecast/forecast_store.h"
#include "observe/report/score_file.h"

namespace welkin::train {
namespace {

constexpr uint64_t kMostScoreBytes = uint64_t{1} << 28;
constexpr const char* kCalibratedVersion = "calibrated forecast 2";

using Series = observe::ScoreSeries;

bool is_score(const Series& series, std::string_view name) {
  return series.forecast == "forecast" && (series.score == name || series.score.starts_with(cat(name, " [")));
}

std::string choose_region(const std::vector<Series>& all, const CalibrationOptions& options) {
  std::vector<std::string> regions;
  constexpr std::string_view kAllSeasons = ", all";
  for (const Series& series : all) {
    if (!is_score(series, "spread_skill") || !series.place.ends_with(kAllSeasons)) continue;
    const std::string region = series.place.substr(0, series.place.size() - kAllSeasons.size());
    if (std::ranges::find(regions, region) == regions.end()) regions.push_back(region);
  }
  if (regions.empty()) {
    throw DataError("calibrate", cat("no spread of an ensemble in this file: path=", options.scores.string()),
                    "Give what welkin evaluate --forecast FILE --json SCORES has written for an ensemble");
  }
  std::string wanted = options.region;
  if (wanted.empty()) wanted = regions.size() == 1 ? regions.front() : "global";
  if (std::ranges::find(regions, wanted) != regions.end()) return wanted;
  throw ConfigError("calibrate", cat("the scores have no such region: region=", wanted, ", path=", options.scores.string()),
                    cat("Give --region one of ", join(regions, ", ")));
}

const Series* find_series(const std::vector<Series>& all, std::string_view score, const std::string& channel,
                          const std::string& place) {
  const auto found = std::ranges::find_if(
      all, [&](const Series& series) { return is_score(series, score) && series.channel == channel && series.place == place; });
  return found == all.end() ? nullptr : &*found;
}

double value_of(const Series* series, size_t lead) {
  return series == nullptr ? std::numeric_limits<double>::quiet_NaN() : series->values[lead];
}

data::ForecastLayout layout_of(const data::ForecastFile& forecast, const EnsembleCalibration& calibration,
                               const CalibratedFile& file) {
  data::ForecastLayout layout;
  for (const std::string& name : forecast.variables()) {
    layout.channels.push_back(calibration.has(name) ? calibration.channel_of(name) : name);
    layout.units.push_back(forecast.unit(name));
  }
  layout.latitude = forecast.latitude(), layout.longitude = forecast.longitude();
  layout.height = forecast.height(), layout.width = forecast.width();
  layout.calendar = forecast.calendar();
  layout.members = forecast.members(), layout.member_numbers = forecast.member_numbers();
  layout.starts = forecast.starts();
  layout.leads = forecast.leads();
  for (int64_t start = 0; start < static_cast<int64_t>(layout.starts.size()); ++start) {
    std::vector<int64_t>& times = layout.valid_times.emplace_back();
    for (int64_t lead = 0; lead < forecast.num_leads(); ++lead) times.push_back(forecast.valid_time(start, lead));
  }
  const auto text = [](std::string value) { return std::vector<std::string>{std::move(value)}; };
  layout.attributes = {{"title", text("Calibrated ensemble forecast")},
                       {"source", text(cat(file.source, ", from ", forecast.path().string()))},
                       {"history", text("made by welkin calibrate")}};
  return layout;
}

// Looks every lead up, before anything is written.
void check_calibrated(const data::ForecastFile& forecast, const EnsembleCalibration& calibration, const CalibratedFile& file) {
  const auto names = forecast.variables();
  if (forecast.members() < 2) {
    throw ConfigError("calibrate", cat("a forecast of one member has no spread: path=", forecast.path().string()),
                      "Make an ensemble: welkin forecast --members M");
  }
  if (std::ranges::none_of(names, [&](const std::string& name) { return calibration.has(name); })) {
    throw ConfigError("calibrate", cat("no variable of the forecast has a score: variables=", join(names, ", ")),
                      "Give the scores of a forecast with these variables");
  }
  for (const auto& [name, least] : file.at_least) {
    if (forecast.has(name)) continue;
    throw ConfigError("calibrate", cat("the forecast has no such variable: --at_least ", name, "=", least),
                      cat("Name one of ", join(names, ", ")));
  }
  if (const bool in_hours = forecast.leads().in_hours; in_hours != calibration.in_hours()) {
    const auto unit = [](bool hours) { return hours ? "hours" : "steps"; };
    throw DataError("calibrate",
                    cat("the forecast and the scores number leads in two units: path=", forecast.path().string(),
                        ", leads=", unit(in_hours), ", scores=", unit(calibration.in_hours())),
                    "Make and score the forecasts with one version of the program");
  }
  for (const std::string& name : names) {
    for (int64_t lead = 0; calibration.has(name) && lead < forecast.num_leads(); ++lead)
      calibration.at(name, forecast.leads(), lead);
  }
}

std::string request_of(const data::ForecastFile& forecast, const EnsembleCalibration& calibration, const CalibratedFile& file) {
  const auto changed = std::filesystem::last_write_time(forecast.path()).time_since_epoch().count();
  std::string text = cat(kCalibratedVersion, "\nfrom ", forecast.path().string(), " of ", changed, "\n", calibration.text());
  for (const auto& [name, least] : file.at_least) text += cat("at_least ", name, "=", least, "\n");
  return text;
}

void write_start(const data::ForecastFile& forecast, const EnsembleCalibration& calibration, const CalibratedFile& file,
                 int64_t start, data::ForecastStore& store) {
  const auto names = forecast.variables();
  const auto plane = static_cast<size_t>(forecast.height() * forecast.width());
  std::vector<float> members(plane * static_cast<size_t>(forecast.members()));
  for (size_t channel = 0; channel < names.size(); ++channel) {
    const std::string& name = names[channel];
    const auto least = file.at_least.find(name);
    for (int64_t lead = 0; lead < forecast.num_leads(); ++lead) {
      forecast.read(name, start, lead, members);
      if (calibration.has(name)) calibrate_members(members, forecast.members(), calibration.at(name, forecast.leads(), lead));
      if (least != file.at_least.end()) {
        for (float& value : members) value = value < least->second ? least->second : value;  // missing values stay
      }
      for (int64_t member = 0; member < forecast.members(); ++member)
        store.write(static_cast<int64_t>(channel), start, member, lead,
                    std::span(members).subspan(static_cast<size_t>(member) * plane, plane));
    }
  }
}

}  // namespace

EnsembleCalibration::EnsembleCalibration(const CalibrationOptions& options) : path_(options.scores) {
  const auto all = observe::scores_of(read_file(options.scores, kMostScoreBytes), options.scores.filename().string());
  const std::string place = cat(choose_region(all, options), ", all");
  std::vector<std::string> channels;
  for (const Series& ratio : all) {
    if (!is_score(ratio, "spread_skill") || ratio.place != place) continue;
    in_hours_ = ratio.lead_unit == "hours";
    const Series *bias = find_series(all, "bias", ratio.channel, place), *rmse = find_series(all, "rmse", ratio.channel, place);
    Channel channel{.leads = ratio.leads, .calibrations = {}};
    for (size_t lead = 0; lead < ratio.leads.size(); ++lead) {
      LeadCalibration calibration{.factor = 1 / ratio.values[lead]};
      if (options.removes_bias) {
        calibration.bias = value_of(bias, lead);
        const double share = calibration.bias / value_of(rmse, lead);
        calibration.factor *= std::sqrt(std::max(0.0, 1 - share * share));
        if (!std::isfinite(share)) calibration.factor = share;  // refused where it is asked for
      }
      channel.calibrations.push_back(calibration);
    }
    channels.push_back(ratio.channel);
    channels_[ratio.channel] = std::move(channel);
  }
  const auto ours = data::variable_names(channels);
  for (size_t i = 0; i < ours.size(); ++i) names_[ours[i]] = channels[i];
  for (const std::string& channel : channels) {
    for (const std::string& name : data::names_of_channel(channel)) names_.try_emplace(name, channel);
  }
}

LeadCalibration EnsembleCalibration::at(const std::string& variable, const data::ForecastLeads& leads, int64_t number) const {
  constexpr double kSame = 1e-6;
  const Channel& channel = channels_.at(names_.at(variable));
  const double lead = leads.numbers.at(static_cast<size_t>(number));
  const std::string words = cat("variable=", variable, ", lead=", leads.text(number), ", path=", path_.string());
  for (size_t i = 0; i < channel.leads.size(); ++i) {
    if (std::abs(channel.leads[i] - lead) > kSame) continue;
    const LeadCalibration& found = channel.calibrations[i];
    if (std::isfinite(found.factor) && found.factor > 0) return found;
    throw DataError("calibrate", cat("the scores say nothing of the spread at this lead: ", words),
                    "Score more starts, or an ensemble whose members differ, or leave the lead out of the forecast");
  }
  throw DataError("calibrate", cat("the scores have no such lead: ", words),
                  "Score forecasts that reach as far, in the same steps");
}

std::string EnsembleCalibration::text() const {
  std::string text;
  for (const auto& [name, channel] : channels_) {
    text += name;
    for (size_t i = 0; i < channel.leads.size(); ++i)
      text += cat(" ", channel.leads[i], ":", channel.calibrations[i].factor, ":", channel.calibrations[i].bias);
    text += "\n";
  }
  return text;
}

void calibrate_members(std::span<float> members, int64_t num_members, const LeadCalibration& calibration) {
  const auto count = static_cast<size_t>(num_members), points = members.size() / count;
  for (size_t point = 0; point < points; ++point) {
    double mean = 0;
    for (size_t m = 0; m < count; ++m) mean += static_cast<double>(members[m * points + point]);
    mean /= static_cast<double>(count);
    for (size_t m = 0; m < count; ++m) {
      float& value = members[m * points + point];
      value = static_cast<float>(mean - calibration.bias + calibration.factor * (static_cast<double>(value) - mean));
    }
  }
}

void write_calibrated(const data::ForecastFile& forecast, const EnsembleCalibration& calibration, const CalibratedFile& file,
                      const std::function<void(int64_t)>& made) {
  const data::ForecastLayout layout = layout_of(forecast, calibration, file);
  check_calibrated(forecast, calibration, file);
  const std::string request = request_of(forecast, calibration, file);
  data::ForecastStore::check(file.output, layout, request);
  data::ForecastStore store(file.output, layout, request, 0);
  for (int64_t start = 0; start < static_cast<int64_t>(layout.starts.size()); ++start) {
    if (!store.is_done(start)) {
      write_start(forecast, calibration, file, start, store);
      store.finish_unit(start);
    }
    made(start + 1);
  }
  store.publish();
}

}  // namespace welkin::train
