// SPDX-License-Identifier: Apache-2.0
// `welkin data simulate weather --out DIR`: years of a two-layer atmosphere.
#include <CLI/CLI.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "apps/data/simulate_run.h"
#include "core/error.h"
#include "core/text.h"
#include "data/simulate/globe/weather.h"

namespace welkin::apps {
namespace {

void set_grid(const std::string& text, data::simulate::WeatherOptions& options) {
  const size_t cross = text.find('x');
  try {
    size_t used_height = 0, used_width = 0;
    const std::string width = cross == std::string::npos ? "" : text.substr(cross + 1);
    options.height = std::stoll(text.substr(0, cross), &used_height);
    options.width = std::stoll(width, &used_width);
    if (used_height == cross && used_width == width.size()) return;
  } catch (const std::logic_error&) {
    // not a number: reported below
  }
  throw ConfigError("simulate weather", cat("not a grid: grid=", text), "Give rows and columns as in --grid 48x96");
}

}  // namespace

int simulate_weather_verb(Application& application, int argc, char** argv) {
  CLI::App app("years of a two-layer atmosphere as 20 channels (docs/reference/simulate.md)");
  SimulateArguments a;
  data::simulate::WeatherOptions options;
  std::optional<int64_t> years, years_valid, years_test, steps;
  std::optional<std::string> grid;
  add_simulate_flags(app, "weather", a, options);
  app.add_option("--years", years, "training years (default 2)");
  app.add_option("--years_valid", years_valid, "validation years that follow (default 1)");
  app.add_option("--years_test", years_test, "test years that follow (default 1)");
  app.add_option("--first_year", options.first_year, "first training year")->capture_default_str();
  app.add_option("--steps", steps, "6-hourly fields per year from January 1 (default 240; a whole year has 1460)");
  app.add_option("--grid", grid, "rows x columns, 90 to -90 degrees (default 48x96)");
  app.add_option("--truncation", options.truncation, "spectral truncation of the model; 0 = 21, or 42 from 96 rows on")
      ->capture_default_str();
  app.add_option("--spin_up_days", options.spin_up_days, "days that a year runs before it is written")->capture_default_str();
  if (!parse_arguments(application, app, argc, argv)) return 0;
  if (a.scale || !a.layout.empty()) data::simulate::set_scale(options, a.scale.value_or(1.0));
  set_if_given(years, options.years);
  set_if_given(years_valid, options.years_valid);
  set_if_given(years_test, options.years_test);
  set_if_given(steps, options.steps);
  if (grid) set_grid(*grid, options);
  const int64_t files = options.years + options.years_valid + options.years_test;
  return run_simulation(application, a, options, files * options.steps, data::simulate::simulate_weather);
}

}  // namespace welkin::apps
