// SPDX-License-Identifier: Apache-2.0
// `welkin calibrate`: an ensemble whose spread equals its error, by the scores of earlier forecasts.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/rank_run.h"
#include "apps/cli/verbs.h"
#include "core/error.h"
#include "core/text.h"
#include "data/forecast/forecast_file.h"
#include "observe/log/console.h"
#include "observe/log/progress.h"
#include "train/forecast/ensemble_calibration.h"
#include "version.h"

namespace welkin::apps {
namespace {

// "tp=0,q850=0"
std::map<std::string, float> parse_at_least(const std::vector<std::string>& settings) {
  std::map<std::string, float> values;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    const std::string number = equals == std::string::npos ? "" : setting.substr(equals + 1);
    char* end = nullptr;
    const float value = std::strtof(number.c_str(), &end);
    if (equals == 0 || number.empty() || *end != '\0' || !std::isfinite(value))
      throw ConfigError("calibrate", cat("not a variable and its smallest value: --at_least ", setting), "Write it as tp=0");
    values[setting.substr(0, equals)] = value;
  }
  return values;
}

std::vector<std::string> not_calibrated(const data::ForecastFile& forecast, const train::EnsembleCalibration& calibration) {
  std::vector<std::string> names;
  for (const std::string& name : forecast.variables()) {
    if (!calibration.has(name)) names.push_back(name);
  }
  return names;
}

}  // namespace

int verb_calibrate(Application& application, int argc, char** argv) {
  CLI::App app("Scales the members' distance from their mean, by channel and lead, until spread and error are equal");
  std::string path;
  train::CalibrationOptions options;
  train::CalibratedFile file{.output = {}, .source = cat("Welkin ", kVersion)};
  std::vector<std::string> at_least;
  app.add_option("FORECAST", path, "ensemble of welkin forecast, or in WeatherBench2's form")->required();
  app.add_option("--scores", options.scores,
                 "JSON file of welkin evaluate --forecast for earlier forecasts by the same model, with the same leads")
      ->required();
  app.add_option("--output", file.output, "file to write, NAME.zarr or NAME.nc; must not exist")->required();
  app.add_flag("--remove_bias", options.removes_bias, "also subtract the bias of the scores from all members");
  app.add_option("--region", options.region, "region of the scores (default: the only one, or global)");
  app.add_option("--at_least", at_least, "smallest values of variables, such as tp=0,q850=0")->delimiter(',');
  if (!parse_arguments(application, app, argc, argv)) return 0;
  need_one_process("calibrate");
  file.at_least = parse_at_least(at_least);
  const data::ForecastFile forecast(path);
  const train::EnsembleCalibration calibration(options);
  observe::Console console;
  observe::Progress progress(
      console, {.title = "calibrate", .total = static_cast<int64_t>(forecast.starts().size()), .unit = "starts", .now_s = {}});
  train::write_calibrated(forecast, calibration, file, [&](int64_t done) { progress.update(done); });
  progress.finish();
  const auto left = not_calibrated(forecast, calibration);
  application.out << forecast.starts().size() << " starts, " << forecast.num_leads() << " leads, " << forecast.members()
                  << " members\n";
  if (!left.empty()) application.out << "unchanged, without scores: " << join(left, ", ") << "\n";
  application.out << file.output.string() << "\n";
  return 0;
}

}  // namespace welkin::apps
