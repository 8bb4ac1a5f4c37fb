// SPDX-License-Identifier: Apache-2.0
#include "train/skill/skill_run.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "data/forecast/forecast_layout.h"
#include "train/learn/metrics.h"
#include "train/learn/metrics_spectrum.h"
#include "train/skill/seasons.h"

namespace welkin::train {
namespace {

// For each start of the forecast the number of that start in the second; of leads that both have, the valid times agree.
std::vector<std::optional<int64_t>> starts_in(const data::ForecastFile& forecast, const data::ForecastFile& second) {
  const auto date = [&](int64_t seconds) { return data::format_date(forecast.calendar(), seconds); };
  if (second.calendar() != forecast.calendar()) {
    throw DataError("evaluate",
                    cat("two forecasts of different calendars cannot be paired: path=", forecast.path().string(),
                        ", calendar=", data::name_of(forecast.calendar()), ", second=", second.path().string(),
                        ", calendar=", data::name_of(second.calendar())),
                    "Give forecasts of the same data");
  }
  std::vector<std::optional<int64_t>> places;
  bool any = false;
  for (size_t start = 0; start < forecast.starts().size(); ++start) {
    const auto found = std::ranges::find(second.starts(), forecast.starts()[start]);
    std::optional<int64_t>& place = places.emplace_back();
    if (found == second.starts().end()) continue;
    place = found - second.starts().begin(), any = true;
    for (int64_t lead = 0; lead < std::min(forecast.num_leads(), second.num_leads()); ++lead) {
      const int64_t one = forecast.valid_time(static_cast<int64_t>(start), lead), other = second.valid_time(*place, lead);
      if (one == other) continue;
      throw DataError("evaluate",
                      cat("two forecasts of other leads cannot be paired: path=", forecast.path().string(),
                          ", second=", second.path().string(), ", start=", date(*found), ", lead=", forecast.leads().text(lead),
                          ", valid=", date(one), " and ", date(other)),
                      "Give forecasts that begin at the same lead, with steps that are equally long");
    }
  }
  if (any) return places;
  throw DataError("evaluate",
                  cat("two forecasts without a common start cannot be paired: path=", forecast.path().string(),
                      ", first=", date(forecast.starts().front()), ", last=", date(forecast.starts().back()), ", second=",
                      second.path().string(), ", first=", date(second.starts().front()), ", last=", date(second.starts().back())),
                  "Make both with the same --from");
}

// Fields of one start, lead and channel at a time.
class SkillRun {
 public:
  SkillRun(const SkillSources& sources, const std::vector<ScoreRegion>& regions)
      : sources_(sources),
        names_(data::variable_names(sources.truth.spec().target.channels)),
        plane_(static_cast<size_t>(sources.forecast.height() * sources.forecast.width())) {
    check_times();
    sources.truth.need_truth("a score");
    for (const ScoreRegion& region : regions) {
      weights_.push_back(region_weights(region, sources.forecast.latitude(), sources.forecast.longitude()));
      skill_.regions.push_back(region.name);
      skill_.region_points.push_back(std::ranges::count_if(weights_.back(), [](double weight) { return weight > 0; }));
    }
    lay_out();
  }

  Skill run(const std::function<void(int64_t)>& progress) {
    const std::vector<bool> has_second = leads_with([&](int64_t start, int64_t lead) { return second_of(start, lead); });
    const std::vector<bool> has_persistence = leads_with([&](int64_t start, int64_t lead) {
      return state_of(start) && (!has_second[static_cast<size_t>(lead)] || second_of(start, lead));
    });
    for (int64_t start = 0; start < skill_.num_starts; ++start) {
      for (int64_t lead = 0; lead < sources_.forecast.num_leads(); ++lead) {
        const auto at = static_cast<size_t>(lead);
        const auto valid = truth_of(start, lead);
        if (!valid) continue;
        cases_ += 1;
        // All that is compared is over the same starts.
        if (has_second[at] && !second_of(start, lead)) {
          skill_.without_second[at] += 1;
          continue;
        }
        if (has_persistence[at] && !state_of(start)) {
          skill_.without_state[at] += 1;
          continue;
        }
        for (int64_t channel = 0; channel < num_channels(); ++channel) score(start, lead, channel, *valid);
      }
      progress(start + 1);
    }
    if (cases_ == 0) {
      throw DataError("evaluate",
                      cat("there is no truth at any time of the forecast: path=", sources_.forecast.path().string(),
                          ", first=", data::format_date(sources_.forecast.calendar(), sources_.forecast.valid_time(0, 0))),
                      "Give the data that hold these times: --split test, or --states FOLDER");
    }
    finish_means();
    return std::move(skill_);
  }

 private:
  int64_t num_channels() const { return static_cast<int64_t>(skill_.channels.size()); }

  std::optional<int64_t> truth_of(int64_t start, int64_t lead) const {
    return sources_.truth.index_of(sources_.forecast.valid_time(start, lead));
  }

  std::optional<int64_t> state_of(int64_t start) const {
    return sources_.truth.index_of(sources_.forecast.starts()[static_cast<size_t>(start)]);
  }

  // The second forecast's number of this start, where it has this lead.
  std::optional<int64_t> second_of(int64_t start, int64_t lead) const {
    if (sources_.second == nullptr || lead >= sources_.second->num_leads()) return {};
    return starts_in_second_[static_cast<size_t>(start)];
  }

  // True for leads of which some start has a truth and what `has` asks for. For the others the forecast is scored without it.
  template <typename Has>
  std::vector<bool> leads_with(const Has& has) const {
    std::vector<bool> leads;
    for (int64_t lead = 0; lead < sources_.forecast.num_leads(); ++lead) {
      bool has_both = false;
      for (int64_t start = 0; start < skill_.num_starts && !has_both; ++start)
        has_both = truth_of(start, lead).has_value() && static_cast<bool>(has(start, lead));
      leads.push_back(has_both);
    }
    return leads;
  }

  void check_times() {
    const data::ForecastFile& forecast = sources_.forecast;
    if (data::written_calendar(sources_.truth.calendar()) != forecast.calendar()) {
      throw DataError("evaluate",
                      cat("the forecast has another calendar than the truth: forecast=", data::name_of(forecast.calendar()),
                          ", truth=", data::name_of(sources_.truth.calendar())),
                      "Give the data of the run that made the forecast");
    }
    if (sources_.second != nullptr) starts_in_second_ = starts_in(forecast, *sources_.second);
  }

  void lay_out() {
    const data::ForecastFile& forecast = sources_.forecast;
    const data::SampleSpec& spec = sources_.truth.spec();
    for (size_t c = 0; c < names_.size(); ++c) {
      if (!forecast.has(names_[c]) || (sources_.second != nullptr && !sources_.second->has(names_[c]))) {
        skill_.missing.push_back(spec.target.channels[c]);
        continue;
      }
      places_.push_back(static_cast<int64_t>(c));
      skill_.channels.push_back(spec.target.channels[c]);
      skill_.units.push_back(spec.target.units[c]);
      if (sources_.climatology != nullptr && !sources_.climatology->has(names_[c]))
        skill_.without_climatology.push_back(spec.target.channels[c]);
    }
    if (places_.empty()) {
      throw DataError(
          "evaluate",
          cat("the forecast holds no channel of the truth: path=", forecast.path().string(), ", truth=", join(names_, ", ")),
          "Give the data of the run that made the forecast");
    }
    skill_.num_starts = static_cast<int64_t>(forecast.starts().size());
    skill_.without_units = forecast.without_units();
    skill_.height = forecast.height(), skill_.width = forecast.width();
    skill_.without_state.assign(static_cast<size_t>(forecast.num_leads()), 0);
    skill_.without_second = skill_.without_state;
    skill_.leads = forecast.leads().numbers;
    if (!forecast.leads().in_hours) skill_.lead_unit = "steps";
    for (int64_t start = 0; start < skill_.num_starts; ++start) {
      std::vector<size_t>& seasons = skill_.seasons.emplace_back();
      for (int64_t lead = 0; lead < forecast.num_leads(); ++lead)
        seasons.push_back(season_of_month(data::to_date(forecast.calendar(), forecast.valid_time(start, lead)).month));
    }
    const auto table = [&](const std::string& name, int64_t members) {
      skill_.tables.emplace_back(name, SkillShape{.starts = skill_.num_starts,
                                                  .leads = forecast.num_leads(),
                                                  .channels = num_channels(),
                                                  .regions = static_cast<int64_t>(weights_.size()),
                                                  .members = members});
    };
    table("forecast", forecast.members());
    if (sources_.second != nullptr) table("second", sources_.second->members());
    table("persistence", 1);
    if (sources_.climatology != nullptr) table("climatology", 1);
    skill_.maps.resize(places_.size()), map_cases_.resize(places_.size());
    skill_.spectra.assign(places_.size(), std::vector<LeadSpectra>(static_cast<size_t>(forecast.num_leads())));
    spectrum_cases_.assign(places_.size() * static_cast<size_t>(forecast.num_leads()), 0.0);
  }

  std::vector<float> field(size_t members) const { return std::vector<float>(members * plane_); }

  SkillTable& table(std::string_view name) { return *std::ranges::find(skill_.tables, name, &SkillTable::name); }

  void score(int64_t start, int64_t lead, int64_t channel, int64_t valid) {
    const int64_t place = places_[static_cast<size_t>(channel)];
    const std::string& name = names_[static_cast<size_t>(place)];
    std::vector<float> truth = field(1), state, climatology;
    sources_.truth.read_truth(valid, place, truth);
    if (const auto before = state_of(start)) {
      state = field(1);
      sources_.truth.read_truth(*before, place, state);
      // A forecast has holes where its start has them, also where the truth has a value meanwhile.
      for (size_t i = 0; i < plane_; ++i) truth[i] = std::isnan(state[i]) ? state[i] : truth[i];
    } else if (sources_.truth.has_holes()) {
      take_holes_of_forecast(name, start, truth);
    }
    if (sources_.climatology != nullptr && sources_.climatology->has(name)) {
      climatology = field(1);
      sources_.climatology->read(name, sources_.forecast.calendar(), sources_.forecast.valid_time(start, lead), climatology);
    }
    const auto add = [&](std::string_view to, const std::vector<float>& members) {
      table(to).set(start, lead, channel, score_field({members, truth, climatology}, weights_));
    };
    std::vector<float> members = field(static_cast<size_t>(sources_.forecast.members()));
    sources_.forecast.read(name, start, lead, members);
    add("forecast", members);
    add_means(lead, channel, members, truth);
    if (const auto in_second = second_of(start, lead)) {
      std::vector<float> others = field(static_cast<size_t>(sources_.second->members()));
      sources_.second->read(name, *in_second, lead, others);
      add("second", others);
    }
    if (!state.empty()) add("persistence", state);
    if (!climatology.empty()) add("climatology", climatology);
  }

  // Without the start's state its holes are those of the forecast, which are the same at all leads: where no member has a value
  // at the first one. A model that diverges leaves no point out.
  void take_holes_of_forecast(const std::string& name, int64_t start, std::vector<float>& truth) const {
    std::vector<float> members = field(static_cast<size_t>(sources_.forecast.members()));
    sources_.forecast.read(name, start, 0, members);
    std::vector<bool> is_hole(plane_, true);
    for (size_t i = 0; i < members.size(); ++i) is_hole[i % plane_] = is_hole[i % plane_] && std::isnan(members[i]);
    if (std::ranges::count(is_hole, true) == static_cast<std::ptrdiff_t>(plane_)) return;
    for (size_t i = 0; i < plane_; ++i) {
      if (is_hole[i]) truth[i] = std::numeric_limits<float>::quiet_NaN();
    }
  }

  // Spectra, and at the last lead maps of the error of the members' mean. Sums until finish_means().
  void add_means(int64_t lead, int64_t channel, std::vector<float>& members, std::vector<float>& truth) {
    const auto at = static_cast<size_t>(channel);
    LeadSpectra& spectra = skill_.spectra[at][static_cast<size_t>(lead)];
    const bool whole = std::ranges::none_of(truth, [](float value) { return std::isnan(value); });
    if (whole) {
      add_spectrum(members, spectra.forecast), add_spectrum(truth, spectra.truth);
      spectrum_cases_[at * skill_.leads.size() + static_cast<size_t>(lead)] += 1;
    }
    if (lead + 1 < sources_.forecast.num_leads()) return;
    ErrorMaps& maps = skill_.maps[at];
    maps.bias.resize(plane_, 0.0), maps.rmse.resize(plane_, 0.0), map_cases_[at].resize(plane_, 0.0);
    const size_t count = members.size() / plane_;
    for (size_t i = 0; i < plane_; ++i) {
      double mean = 0;
      for (size_t m = 0; m < count; ++m) mean += static_cast<double>(members[m * plane_ + i]) / static_cast<double>(count);
      const double error = mean - static_cast<double>(truth[i]);
      if (std::isnan(truth[i])) continue;
      maps.bias[i] += error, maps.rmse[i] += error * error, map_cases_[at][i] += 1;
    }
  }

  void add_spectrum(std::vector<float>& fields, std::vector<double>& sum) const {
    const auto count = static_cast<int64_t>(fields.size() / plane_);
    const at::Tensor values = at::from_blob(fields.data(), {count, 1, skill_.height, skill_.width}, at::kFloat);
    const at::Tensor spectrum =
        zonal_spectrum(values, latitude_weights(skill_.height, sources_.forecast.latitude())).mean(at::IntArrayRef{0, 1});
    sum.resize(static_cast<size_t>(spectrum.numel()), 0.0);
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += spectrum.const_data_ptr<double>()[k];
  }

  void finish_means() {
    for (size_t c = 0; c < skill_.channels.size(); ++c) {
      for (size_t lead = 0; lead < skill_.leads.size(); ++lead) {
        const double cases = spectrum_cases_[c * skill_.leads.size() + lead];
        for (auto* spectrum : {&skill_.spectra[c][lead].forecast, &skill_.spectra[c][lead].truth}) {
          for (double& value : *spectrum) value /= cases;
        }
      }
      for (size_t i = 0; i < map_cases_[c].size(); ++i) {  // NaN where there is no case
        skill_.maps[c].bias[i] /= map_cases_[c][i];
        skill_.maps[c].rmse[i] = std::sqrt(skill_.maps[c].rmse[i] / map_cases_[c][i]);
      }
    }
  }

  SkillSources sources_;
  std::vector<std::string> names_;
  size_t plane_;
  std::vector<std::vector<double>> weights_;              // by region
  std::vector<std::optional<int64_t>> starts_in_second_;  // by start
  std::vector<int64_t> places_;                           // of the scored channels among the target's
  Skill skill_;
  std::vector<double> spectrum_cases_;          // (channel, lead)
  std::vector<std::vector<double>> map_cases_;  // (channel, point)
  int64_t cases_ = 0;
};

}  // namespace

const SkillTable* Skill::find(std::string_view name) const {
  const auto found = std::ranges::find(tables, name, &SkillTable::name);
  return found == tables.end() ? nullptr : &*found;
}

std::vector<int64_t> Skill::starts_of(size_t season, int64_t lead) const {
  std::vector<int64_t> starts;
  for (int64_t start = 0; start < num_starts; ++start) {
    if (season == 0 || seasons[static_cast<size_t>(start)][static_cast<size_t>(lead)] == season) starts.push_back(start);
  }
  return starts;
}

Skill score_forecast(const SkillSources& sources, const std::vector<ScoreRegion>& regions,
                     const std::function<void(int64_t)>& progress) {
  return SkillRun(sources, regions).run(progress);
}

}  // namespace welkin::train
