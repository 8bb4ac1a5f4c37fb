// SPDX-License-Identifier: Apache-2.0
#include "train/skill/box_plots.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "core/file.h"
#include "core/text.h"
#include "data/forecast/forecast_layout.h"
#include "observe/plot/plot.h"

namespace welkin::train {
namespace {

using BoxJson = nlohmann::ordered_json;

std::vector<double> numbers_in(const BoxJson& list) {
  std::vector<double> numbers;
  for (const BoxJson& value : list) {
    numbers.push_back(value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
  }
  return numbers;
}

// Waves per edge: 1, 2, ...
std::vector<double> waves(size_t count) {
  std::vector<double> places(count);
  std::iota(places.begin(), places.end(), 1.0);
  return places;
}

// Removes wavenumber 0, which is the mean of a crop.
void leave_out_mean(std::vector<observe::Curve>& curves) {
  for (observe::Curve& line : curves) line.x.pop_back(), line.y.erase(line.y.begin());
}

std::vector<double> middles(const std::vector<double>& edges) {
  std::vector<double> places;
  for (size_t i = 0; i + 1 < edges.size(); ++i) places.push_back((edges[i] + edges[i + 1]) / 2);
  return places;
}

std::vector<observe::Curve> beside_target(const BoxJson& both, const std::vector<double>& x) {
  return {{.label = "prediction", .x = x, .y = numbers_in(both["prediction"])},
          {.label = "target", .x = x, .y = numbers_in(both["target"]), .dashed = true, .markers = false}};
}

std::string box_figure(const std::string& channel, const BoxJson& of) {
  const auto plot = [&](const char* x, const char* y, observe::PlotScale scale, std::vector<observe::Curve> curves) {
    return observe::LinePlot{.title = channel,
                             .x = {.title = x},
                             .y = {.title = y, .scale = scale},
                             .curves = std::move(curves),
                             .width = 420,
                             .height = 340};
  };
  constexpr const char* kWaves = "waves per edge";
  const size_t shells = of["power"]["target"].size(), triangles = of["bispectrum"]["target"].size();
  std::vector<observe::Curve> power = beside_target(of["power"], waves(shells));
  std::vector<observe::Curve> correlation = {{.x = waves(shells), .y = numbers_in(of["correlation"])}};
  leave_out_mean(power), leave_out_mean(correlation);
  std::vector<observe::LinePlot> plots = {
      plot(kWaves, "power", observe::PlotScale::Log, std::move(power)),
      plot(kWaves, "correlation", observe::PlotScale::Linear, std::move(correlation)),
      plot(kWaves, "bispectrum, equilateral", observe::PlotScale::Linear, beside_target(of["bispectrum"], waves(triangles))),
      plot("value", "density", observe::PlotScale::Log,
           beside_target(of["distribution"], middles(numbers_in(of["distribution"]["edges"])))),
      plot("value", "peaks above it, per crop", observe::PlotScale::Linear,
           beside_target(of["peaks"], numbers_in(of["peaks"]["above"])))};
  return observe::svg_row(plots);
}

}  // namespace

std::vector<std::filesystem::path> write_box_plots(const std::string& json, const std::filesystem::path& folder) {
  const BoxJson root = BoxJson::parse(json);
  make_folders(folder);
  std::vector<std::string> channels;
  for (const auto& [channel, of] : root["channels"].items()) channels.push_back(channel);
  const std::vector<std::string> names = data::variable_names(channels);
  std::vector<std::filesystem::path> written;
  for (size_t c = 0; c < channels.size(); ++c) {
    written.push_back(folder / cat(names[c], "_box.svg"));
    write_file_atomically(written.back(), box_figure(channels[c], root["channels"][channels[c]]));
  }
  return written;
}

}  // namespace welkin::train
