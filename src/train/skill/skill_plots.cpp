// SPDX-License-Identifier: Apache-2.0
#include "train/skill/skill_plots.h"

#include <algorithm>
#include <cmath>

#include "core/file.h"
#include "core/text.h"
#include "data/forecast/forecast_layout.h"
#include "observe/image/panels.h"
#include "observe/image/png.h"
#include "observe/plot/plot.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

// The lead in days if it is at least two whole days, else in hours.
std::string lead_text(const Skill& skill, double hours) {
  constexpr double kDay = 24;
  if (skill.lead_unit != "h") return cat(hours, hours == 1 ? " step" : " steps");
  return hours >= 2 * kDay && std::fmod(hours, kDay) == 0 ? cat(hours / kDay, " d") : cat(hours, " h");
}

class SkillPlots {
 public:
  SkillPlots(const Skill& skill, const Confidence& confidence, const std::optional<observe::image::MapFrame>& map)
      : skill_(skill),
        map_(map),
        drawn_(skill.num_starts, confidence.replicates, confidence.block, confidence.seed),
        starts_(skill.starts_of(0, 0)) {}

  observe::Curve curve(const SkillTable& table, Score score, int64_t channel, const std::string& label) const {
    observe::Curve line{.label = label, .dashed = table.name() == "persistence" || table.name() == "climatology"};
    line.markers = !line.dashed;
    for (int64_t lead = 0; lead < num_leads(); ++lead) {
      const Interval interval = drawn_.interval([&](const std::vector<double>& counts) {
        return table.score(score, {lead, channel, 0}, starts_, counts);
      });
      line.x.push_back(skill_.leads[static_cast<size_t>(lead)]);
      line.y.push_back(interval.value);
      if (std::isnan(interval.low) || line.dashed) continue;
      line.low.push_back(interval.low), line.high.push_back(interval.high);
    }
    if (line.low.size() != line.y.size()) line.low.clear(), line.high.clear();
    return line;
  }

  observe::LinePlot plot(const std::string& what, int64_t channel, std::vector<observe::Curve> curves) const {
    std::erase_if(curves, [](const observe::Curve& line) {
      return std::ranges::none_of(line.y, [](double value) { return std::isfinite(value); });
    });
    const auto c = static_cast<size_t>(channel);
    return {.title = cat(skill_.channels[c], ", ", skill_.regions.front()),
            .x = {.title = cat("lead [", skill_.lead_unit, "]")},
            .y = {.title = skill_.units[c].empty() || what == "ACC" ? what : cat(what, " [", skill_.units[c], "]")},
            .curves = std::move(curves),
            .width = 480,
            .height = 360};
  }

  // RMSE beside the baselines; ACC; of an ensemble CRPS, spread and skill.
  std::string curves(int64_t channel) const {
    std::vector<observe::Curve> rmse, acc, ensemble;
    for (const SkillTable& table : skill_.tables) {
      rmse.push_back(curve(table, Score::Rmse, channel, table.name()));
      if (table.name() != "climatology") acc.push_back(curve(table, Score::Acc, channel, table.name()));
      if (table.shape().members == 1) continue;
      ensemble.push_back(curve(table, Score::Crps, channel, cat("CRPS ", table.name())));
      ensemble.push_back(curve(table, Score::Spread, channel, cat("spread ", table.name())));
      ensemble.push_back(curve(table, Score::Rmse, channel, cat("RMSE ", table.name())));
    }
    std::vector<observe::LinePlot> plots = {plot("RMSE", channel, std::move(rmse))};
    if (skill_.find("climatology") != nullptr) plots.push_back(plot("ACC", channel, std::move(acc)));
    if (!ensemble.empty()) plots.push_back(plot("CRPS, spread, RMSE", channel, std::move(ensemble)));
    return observe::svg_row(plots);
  }

  // At the first, the middle and the last lead: power by wavenumber beside the truth; of an ensemble ranks of the truth among the
  // members, and of the event that it is above the climatology how often it happened by the share of members that foresee it.
  std::string distributions(int64_t channel) const {
    const SkillTable& forecast = skill_.tables.front();
    std::vector<observe::Curve> ranks, foreseen, power;
    for (const int64_t lead : shown_leads()) {
      const std::string label = lead_text(skill_, skill_.leads[static_cast<size_t>(lead)]);
      const SkillPlace place{lead, channel, 0};
      const LeadSpectra& spectrum = skill_.spectra[static_cast<size_t>(channel)][static_cast<size_t>(lead)];
      power.push_back(by_number(label, without_first(spectrum.forecast), 1));
      if (lead + 1 == num_leads()) power.push_back(by_number(cat("truth, ", label), without_first(spectrum.truth), 1));
      if (lead + 1 == num_leads()) power.back().dashed = true, power.back().markers = false;
      if (forecast.shape().members == 1) continue;
      ranks.push_back(by_number(label, forecast.ranks(place), 0));
      if (skill_.find("climatology") == nullptr) continue;
      foreseen.push_back(by_number(label, forecast.happened(place), 0));
      for (double& x : foreseen.back().x) x /= static_cast<double>(forecast.shape().members);
    }
    std::vector<observe::LinePlot> plots = {plot("power", channel, std::move(power))};
    plots.front().x = {.title = "zonal wavenumber"}, plots.front().y = {.title = "power", .scale = observe::PlotScale::Log};
    const auto members = static_cast<double>(forecast.shape().members);
    if (!ranks.empty()) {
      ranks.push_back({.label = "of a perfect ensemble",
                       .x = {0, members},
                       .y = {1 / (members + 1), 1 / (members + 1)},
                       .dashed = true,
                       .markers = false});
      plots.push_back(plot("share", channel, std::move(ranks)));
      plots.back().x = {.title = "members below the truth"}, plots.back().y = {.title = "share", .low = 0.0};
    }
    if (!foreseen.empty()) {
      foreseen.push_back({.label = "reliable", .x = {0, 1}, .y = {0, 1}, .dashed = true, .markers = false});
      plots.push_back(plot("happened", channel, std::move(foreseen)));
      plots.back().x = {.title = "share of members above the climatology", .low = 0.0, .high = 1.0};
      plots.back().y = {.title = "share of cases in which it was", .low = 0.0, .high = 1.0};
    }
    std::erase_if(plots, [](const observe::LinePlot& each) { return each.curves.empty(); });  // of holes there is no spectrum
    return plots.empty() ? std::string() : observe::svg_row(plots);
  }

  observe::image::Raster maps(size_t channel) const {
    const ErrorMaps& from = skill_.maps[channel];
    const std::vector<float> bias(from.bias.begin(), from.bias.end()), rmse(from.rmse.begin(), from.rmse.end());
    const auto panel = [&](const char* what, const std::vector<float>& values, observe::image::ColorMap colors) {
      return observe::image::Panel{.title = cat(what, skill_.units[channel].empty() ? "" : cat(" [", skill_.units[channel], "]")),
                                   .values = values,
                                   .rows = static_cast<int>(skill_.height),
                                   .columns = static_cast<int>(skill_.width),
                                   .colors = colors,
                                   .map = map_};
    };
    return observe::image::draw_panels({.title = cat(skill_.channels[channel], ", lead ", lead_text(skill_, skill_.leads.back())),
                                        .panels = {panel("bias", bias, observe::image::ColorMap::Diverging),
                                                   panel("RMSE", rmse, observe::image::ColorMap::Viridis)}});
  }

  // A table per region: a row per channel, a column per lead.
  std::string scorecard() const {
    const SkillTable* second = skill_.find("second");
    const SkillTable& other = second != nullptr ? *second : *skill_.find("persistence");
    const std::vector<double> once(starts_.size(), 1.0);
    std::vector<std::string> pages;
    for (size_t region = 0; region < skill_.regions.size(); ++region) {
      observe::CellPlot table{.title = skill_.regions[region]};
      for (const double lead : skill_.leads) table.columns.push_back(lead_text(skill_, lead));
      for (size_t channel = 0; channel < skill_.channels.size(); ++channel) {
        observe::BarGroup row{.label = skill_.channels[channel]};
        for (int64_t lead = 0; lead < num_leads(); ++lead) {
          const SkillPlace place{lead, static_cast<int64_t>(channel), static_cast<int64_t>(region)};
          const double ours = skill_.tables.front().score(Score::Rmse, place, starts_, once);
          const double theirs = other.score(Score::Rmse, place, starts_, once);
          row.values.push_back(100 * (theirs - ours) / theirs);
        }
        table.rows.push_back(std::move(row));
      }
      pages.push_back(observe::svg(table));
    }
    return observe::stacked(cat("RMSE below that of ", second != nullptr ? "the second forecast" : "persistence", " [%]"), pages);
  }

 private:
  std::vector<int64_t> shown_leads() const {
    std::vector<int64_t> leads{0, (num_leads() - 1) / 2, num_leads() - 1};
    leads.erase(std::unique(leads.begin(), leads.end()), leads.end());
    return leads;
  }

  static observe::Curve by_number(const std::string& label, std::vector<double> values, int64_t first) {
    observe::Curve line{.label = label, .y = std::move(values)};
    for (size_t i = 0; i < line.y.size(); ++i) line.x.push_back(static_cast<double>(first) + static_cast<double>(i));
    return line;
  }

  // Without wavenumber 0, which is the mean.
  static std::vector<double> without_first(const std::vector<double>& spectrum) {
    return spectrum.empty() ? spectrum : std::vector<double>(spectrum.begin() + 1, spectrum.end());
  }

  int64_t num_leads() const { return static_cast<int64_t>(skill_.leads.size()); }

  const Skill& skill_;
  std::optional<observe::image::MapFrame> map_;
  Resampling drawn_;
  std::vector<int64_t> starts_;
};

}  // namespace

std::vector<fs::path> write_skill_plots(const Skill& skill, const Confidence& confidence,
                                        const std::optional<observe::image::MapFrame>& map, const fs::path& folder) {
  make_folders(folder);
  const SkillPlots plots(skill, confidence, map);
  const auto names = data::variable_names(skill.channels);
  std::vector<fs::path> written;
  for (size_t channel = 0; channel < skill.channels.size(); ++channel) {
    written.push_back(folder / cat(names[channel], "_by_lead.svg"));
    write_file_atomically(written.back(), plots.curves(static_cast<int64_t>(channel)));
    if (const std::string shown = plots.distributions(static_cast<int64_t>(channel)); !shown.empty()) {
      written.push_back(folder / cat(names[channel], "_distributions.svg"));
      write_file_atomically(written.back(), shown);
    }
    if (skill.maps[channel].bias.empty()) continue;
    written.push_back(folder / cat(names[channel], "_error.png"));
    observe::image::write_png(written.back(), plots.maps(channel));
  }
  written.push_back(folder / "scorecard.svg");
  write_file_atomically(written.back(), plots.scorecard());
  return written;
}

}  // namespace welkin::train
