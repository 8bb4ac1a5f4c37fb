// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/forecast_movie.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/std.h>

#include <algorithm>
#include <span>

#include "core/error.h"
#include "core/text.h"
#include "data/forecast/forecast_file.h"
#include "data/forecast/forecast_layout.h"
#include "train/evaluate/field_animation.h"

namespace welkin::train {
namespace {

// (member, H, W)
at::Tensor members_at(const data::ForecastFile& file, const std::string& variable, int64_t lead) {
  at::Tensor members = at::empty({file.members(), file.height(), file.width()}, at::kFloat);
  file.read(variable, 0, lead, {members.data_ptr<float>(), static_cast<size_t>(members.numel())});
  return members;
}

FieldMovie movie_of(const data::ForecastFile& file, const std::string& variable, const std::string& name) {
  const bool is_ensemble = file.members() > 1;
  FieldMovie movie{.panels = {{.title = is_ensemble ? cat("mean of ", file.members(), " members") : "forecast"}},
                   .map = observe::image::map_frame(file.latitude(), file.longitude())};
  if (is_ensemble) movie.panels.push_back({.title = "standard deviation of the members", .range_of = 1});
  for (int64_t lead = 0; lead < file.num_leads(); ++lead) {
    const at::Tensor members = members_at(file, variable, lead);
    movie.titles.push_back(
        cat(name, ", ", data::format_date(file.calendar(), file.valid_time(0, lead)), " (lead ", file.leads().text(lead), ")"));
    movie.panels[0].planes.push_back(members.mean(0).contiguous());
    if (is_ensemble) movie.panels[1].planes.push_back(members.std(0).contiguous());
  }
  return movie;
}

size_t movie_channel(const data::SampleSpec& spec, const std::string& name) {
  const auto& channels = spec.target.channels;
  const auto found = std::find(channels.begin(), channels.end(), name);
  if (found == channels.end())
    throw ConfigError("forecast", cat("there is no such channel: channel=", name), cat("Choose one of: ", join(channels, ", ")));
  return static_cast<size_t>(found - channels.begin());
}

}  // namespace

void check_movie_channels(const data::SampleSpec& spec, const std::vector<std::string>& channels) {
  for (const std::string& name : channels) movie_channel(spec, name);
}

std::vector<std::filesystem::path> write_forecast_movies(const data::SampleSpec& spec, const ForecastMovieOptions& options) {
  const data::ForecastFile file(options.forecast);
  const std::vector<std::string> variables = data::variable_names(spec.target.channels);
  std::vector<std::string> names = options.channels;
  if (names.empty()) names = {spec.target.channels.front()};
  std::vector<std::filesystem::path> written;
  for (const std::string& name : names) {
    const size_t channel = movie_channel(spec, name);
    const std::string& unit = spec.target.units[channel];
    const FieldMovie movie = movie_of(file, variables[channel], unit.empty() ? name : cat(name, " [", unit, "]"));
    const std::string stem = options.forecast.stem().string();
    written.push_back(options.forecast.parent_path() /
                      cat(stem, "_", variables[channel], observe::image::extension_of(options.format)));
    write_movie(movie, written.back(), options.format);
  }
  return written;
}

}  // namespace welkin::train
