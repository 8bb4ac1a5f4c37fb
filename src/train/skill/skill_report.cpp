// SPDX-License-Identifier: Apache-2.0
#include "train/skill/skill_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "observe/log/table.h"
#include "train/skill/seasons.h"

namespace welkin::train {
namespace {

using Json = nlohmann::ordered_json;

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json finite_list(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(finite(value));
  return list;
}

std::string digits(double value) {
  if (!std::isfinite(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

double overall(const SkillTable* table, Score score, const SkillPlace& place, const std::vector<int64_t>& starts) {
  if (table == nullptr) return std::nan("");
  return table->score(score, place, starts, std::vector<double>(starts.size(), 1.0));
}

// The identity of one series over leads.
struct SeriesKey {
  int64_t channel = 0, region = 0;
  size_t season = 0;
  Score score = Score::Rmse;
};

class SkillJson {
 public:
  SkillJson(const Skill& skill, const Confidence& confidence) : skill_(skill) {
    for (size_t season = 0; season < kSeasons.size(); ++season) {
      for (int64_t lead = 0; lead < num_leads(); ++lead) {
        starts_.push_back(skill.starts_of(season, lead));
        resamplings_.emplace_back(static_cast<int64_t>(starts_.back().size()), confidence.replicates, confidence.block,
                                  confidence.seed);
      }
    }
  }

  Json scores() const {
    Json rows = Json::array();
    for (const SkillTable& table : skill_.tables) {
      for_each_series([&](const SeriesKey& key) {
        add(rows, table.name(), key, [&](int64_t lead, const std::vector<double>& counts) {
          return table.score(key.score, {lead, key.channel, key.region}, starts(key.season, lead), counts);
        });
      });
    }
    return rows;
  }

  Json differences() const {
    Json rows = Json::array();
    const SkillTable& forecast = skill_.tables.front();
    for (const SkillTable& other : skill_.tables) {
      if (&other == &forecast) continue;
      for_each_series([&](const SeriesKey& key) {
        add(rows, cat("forecast - ", other.name()), key, [&](int64_t lead, const std::vector<double>& counts) {
          const SkillPlace place{lead, key.channel, key.region};
          const auto& of = starts(key.season, lead);
          std::vector<double> of_both = counts;
          for (size_t i = 0; i < of.size(); ++i)
            of_both[i] = forecast.has(of[i], place) && other.has(of[i], place) ? counts[i] : 0;
          return forecast.score(key.score, place, of, of_both) - other.score(key.score, place, of, of_both);
        });
      });
    }
    return rows;
  }

 private:
  int64_t num_leads() const { return static_cast<int64_t>(skill_.leads.size()); }
  size_t at(size_t season, int64_t lead) const { return season * skill_.leads.size() + static_cast<size_t>(lead); }
  const std::vector<int64_t>& starts(size_t season, int64_t lead) const { return starts_[at(season, lead)]; }

  void for_each_series(const std::function<void(const SeriesKey&)>& body) const {
    for (int64_t channel = 0; channel < static_cast<int64_t>(skill_.channels.size()); ++channel) {
      for (int64_t region = 0; region < static_cast<int64_t>(skill_.regions.size()); ++region) {
        for (size_t season = 0; season < kSeasons.size(); ++season) {
          for (size_t score = 0; score < kScoreNames.size(); ++score) body({channel, region, season, static_cast<Score>(score)});
        }
      }
    }
  }

  // Series without any number are left out.
  void add(Json& rows, const std::string& name, const SeriesKey& key,
           const std::function<double(int64_t, const std::vector<double>&)>& statistic) const {
    std::vector<double> values, low, high;
    for (int64_t lead = 0; lead < num_leads(); ++lead) {
      const Interval interval =
          resamplings_[at(key.season, lead)].interval([&](const std::vector<double>& counts) { return statistic(lead, counts); });
      values.push_back(interval.value), low.push_back(interval.low), high.push_back(interval.high);
    }
    if (std::ranges::none_of(values, [](double value) { return std::isfinite(value); })) return;
    rows.push_back({{"forecast", name},
                    {"channel", skill_.channels[static_cast<size_t>(key.channel)]},
                    {"region", skill_.regions[static_cast<size_t>(key.region)]},
                    {"season", kSeasons[key.season]},
                    {"score", kScoreNames[static_cast<size_t>(key.score)]},
                    {"values", finite_list(values)},
                    {"low", finite_list(low)},
                    {"high", finite_list(high)}});
  }

  const Skill& skill_;
  std::vector<std::vector<int64_t>> starts_;  // by season and lead
  std::vector<Resampling> resamplings_;
};

std::string lead_key(const Skill& skill) { return skill.lead_unit == "h" ? "lead_hours" : "lead_steps"; }

// Adds distributions of the forecast alone, over all starts.
void add_distributions(const Skill& skill, Json& report) {
  const SkillTable& table = skill.tables.front();
  Json ranks = Json::array(), reliability = Json::array(), spectra = Json::array();
  for (size_t c = 0; c < skill.channels.size(); ++c) {
    for (size_t lead = 0; lead < skill.leads.size(); ++lead) {
      for (size_t region = 0; region < skill.regions.size(); ++region) {
        const SkillPlace place{static_cast<int64_t>(lead), static_cast<int64_t>(c), static_cast<int64_t>(region)};
        const Json of{{"channel", skill.channels[c]}, {"region", skill.regions[region]}, {lead_key(skill), skill.leads[lead]}};
        if (table.shape().members == 1) continue;
        ranks.push_back(of), ranks.back()["shares"] = finite_list(table.ranks(place));
        if (skill.find("climatology") == nullptr) continue;
        reliability.push_back(of);
        reliability.back()["foreseen"] = finite_list(table.foreseen(place));
        reliability.back()["happened"] = finite_list(table.happened(place));
      }
      const LeadSpectra& spectrum = skill.spectra[c][lead];
      spectra.push_back({{"channel", skill.channels[c]},
                         {lead_key(skill), skill.leads[lead]},
                         {"forecast", finite_list(spectrum.forecast)},
                         {"truth", finite_list(spectrum.truth)}});
    }
  }
  report["rank_histograms"] = std::move(ranks), report["reliability"] = std::move(reliability),
  report["spectra"] = std::move(spectra);
}

int64_t count_starts(const Skill& skill, const std::function<bool(int64_t)>& counts) {
  int64_t count = 0;
  for (int64_t start = 0; start < skill.num_starts; ++start) count += counts(start) ? 1 : 0;
  return count;
}

int64_t scored_starts(const Skill& skill, const SkillTable& table, const SkillPlace& place) {
  return count_starts(skill, [&](int64_t start) { return table.has(start, place); });
}

// The number of all points of the scored starts, with and without a value.
int64_t all_points(const Skill& skill, const SkillPlace& place) {
  return scored_starts(skill, skill.tables.front(), place) * skill.region_points[static_cast<size_t>(place.region)];
}

// True if some points of the first region have no truth.
bool has_holes(const Skill& skill) {
  for (int64_t channel = 0; channel < static_cast<int64_t>(skill.channels.size()); ++channel) {
    for (int64_t lead = 0; lead < static_cast<int64_t>(skill.leads.size()); ++lead) {
      const SkillPlace place{lead, channel, 0};
      if (skill.tables.front().points(place) != all_points(skill, place)) return true;
    }
  }
  return false;
}

Json points_json(const Skill& skill) {
  Json rows = Json::array();
  for (size_t channel = 0; channel < skill.channels.size(); ++channel) {
    for (size_t region = 0; region < skill.regions.size(); ++region) {
      Json with_value = Json::array(), all = Json::array();
      for (size_t lead = 0; lead < skill.leads.size(); ++lead) {
        const SkillPlace place{static_cast<int64_t>(lead), static_cast<int64_t>(channel), static_cast<int64_t>(region)};
        with_value.push_back(skill.tables.front().points(place)), all.push_back(all_points(skill, place));
      }
      rows.push_back({{"channel", skill.channels[channel]},
                      {"region", skill.regions[region]},
                      {"with_value", std::move(with_value)},
                      {"all", std::move(all)}});
    }
  }
  return rows;
}

std::string lead_words(const Skill& skill, int64_t lead) {
  return cat(skill.leads[static_cast<size_t>(lead)], " ", skill.lead_unit);
}

// The first lead and channel at which `number` gives more than none, in words.
void add_note(const Skill& skill, std::vector<std::string>& notes, const std::function<int64_t(const SkillPlace&)>& number,
              const std::function<std::string(int64_t, const std::string&)>& words) {
  for (int64_t lead = 0; lead < static_cast<int64_t>(skill.leads.size()); ++lead) {
    for (int64_t channel = 0; channel < static_cast<int64_t>(skill.channels.size()); ++channel) {
      const int64_t found = number({lead, channel, 0});
      if (found == 0) continue;
      notes.push_back(words(found, cat(skill.channels[static_cast<size_t>(channel)], " at ", lead_words(skill, lead))));
      return;
    }
  }
}

}  // namespace

std::vector<std::string> skill_notes(const Skill& skill) {
  std::vector<std::string> notes;
  const SkillTable& forecast = skill.tables.front();
  const int64_t all = skill.num_starts;
  if (!skill.missing.empty()) notes.push_back(cat("Channels that the forecast does not hold: ", join(skill.missing, ", ")));
  if (!skill.without_units.empty())
    notes.push_back(
        cat("No units in the forecast: ", join(skill.without_units, ", "), ". They are taken for those of the truth"));
  if (!skill.without_climatology.empty())
    notes.push_back(cat("Channels that the climatology does not hold: ", join(skill.without_climatology, ", ")));
  add_note(
      skill, notes,
      [&](const SkillPlace& place) {
        const auto lead = static_cast<size_t>(place.lead);
        return all - scored_starts(skill, forecast, place) - skill.without_state[lead] - skill.without_second[lead];
      },
      [&](int64_t number, const std::string& where) {
        return cat("No truth: ", number, " of ", all, " starts, of ", where, ". Scores are over the others");
      });
  add_note(
      skill, notes, [&](const SkillPlace& place) { return skill.without_state[static_cast<size_t>(place.lead)]; },
      [&](int64_t number, const std::string& where) {
        return cat("No state for persistence: ", number, " of ", all, " starts, first of ", where,
                   ". Scores are over the others");
      });
  add_note(
      skill, notes, [&](const SkillPlace& place) { return skill.without_second[static_cast<size_t>(place.lead)]; },
      [&](int64_t number, const std::string& where) {
        return cat("Not in the second forecast: ", number, " of ", all, " starts, first of ", where,
                   ". Scores are over the others");
      });
  for (const SkillTable& table : skill.tables) {
    add_note(
        skill, notes,
        [&](const SkillPlace& place) {
          return count_starts(skill, [&](int64_t start) { return table.has_diverged(start, place); });
        },
        [&](int64_t number, const std::string& where) {
          if (table.name() == "climatology") {
            return cat(
                "The climatology has no value at points with a truth: ", number, " of ", all, " starts, first of ", where,
                ". It has no scores at such leads; ACC is over the points that have one, and has none where no point does");
          }
          return cat("Not finite (", table.name(), "): ", number, " of ", all, " starts, first of ", where,
                     ". There is no score where a start is not finite");
        });
    add_note(
        skill, notes,
        [&](const SkillPlace& place) {
          const int64_t scored = scored_starts(skill, table, place);
          const bool is_named = table.name() == "climatology" && scored == 0;  // the channel, above
          return is_named ? 0 : scored_starts(skill, forecast, place) - scored;
        },
        [&](int64_t number, const std::string& where) {
          return cat("Fewer starts (", table.name(), "): it has no field for ", number, " of the forecast's, of ", where,
                     ". Differences in the JSON are over the starts of both");
        });
  }
  return notes;
}

std::string skill_table_text(const Skill& skill) {
  using observe::Align;
  const SkillTable& forecast = skill.tables.front();
  const bool is_ensemble = forecast.shape().members > 1;
  std::vector<observe::Column> columns{
      {"channel"}, {cat("lead [", skill.lead_unit, "]"), Align::Right}, {"starts", Align::Right}};
  std::vector<std::pair<const SkillTable*, Score>> cells = {
      {&forecast, Score::Rmse}, {&forecast, Score::Bias}, {&forecast, Score::Mae}};
  std::vector<std::string> heads = {"RMSE", "bias", "MAE"};
  const auto add = [&](const char* head, const SkillTable* table, Score score) {
    heads.emplace_back(head), cells.emplace_back(table, score);
  };
  if (skill.find("climatology") != nullptr) add("ACC", &forecast, Score::Acc);
  if (is_ensemble) add("CRPS", &forecast, Score::Crps), add("spread/skill", &forecast, Score::SpreadSkill);
  if (skill.find("second") != nullptr) add("RMSE of second", skill.find("second"), Score::Rmse);
  add("of persistence", skill.find("persistence"), Score::Rmse);
  if (skill.find("climatology") != nullptr) add("of climatology", skill.find("climatology"), Score::Rmse);
  for (const std::string& head : heads) columns.push_back({head, Align::Right});
  const bool holes = has_holes(skill);
  if (holes) columns.push_back({"points", Align::Right});
  observe::Table table(columns);
  for (size_t c = 0; c < skill.channels.size(); ++c) {
    for (size_t lead = 0; lead < skill.leads.size(); ++lead) {
      const SkillPlace place{static_cast<int64_t>(lead), static_cast<int64_t>(c), 0};
      const auto starts = skill.starts_of(0, static_cast<int64_t>(lead));
      const std::string unit = skill.units[c].empty() ? "" : cat(" [", skill.units[c], "]");
      std::vector<std::string> row = {cat(skill.channels[c], unit), cat(skill.leads[lead]),
                                      cat(scored_starts(skill, forecast, place))};
      for (const auto& [of, score] : cells) row.push_back(digits(overall(of, score, place, starts)));
      if (holes) row.push_back(cat(forecast.points(place), " of ", all_points(skill, place)));
      table.add_row(row);
    }
  }
  return table.text();
}

std::string skill_json(const Skill& skill, const Confidence& confidence) {
  Json report{{"starts", skill.num_starts}, {"members", skill.tables.front().shape().members}, {"channels", Json::object()}};
  for (size_t c = 0; c < skill.channels.size(); ++c) report["channels"][skill.channels[c]] = skill.units[c];
  report[lead_key(skill)] = finite_list(skill.leads);
  report["regions"] = skill.regions;
  report["seasons"] = kSeasons;
  report["bootstrap"] = {{"replicates", confidence.replicates}, {"block", confidence.block}};
  for (const SkillTable& table : skill.tables) {
    for (size_t c = 0; c < skill.channels.size(); ++c) {
      Json& counts = report["scored_starts"][table.name()][skill.channels[c]];
      for (size_t lead = 0; lead < skill.leads.size(); ++lead)
        counts.push_back(scored_starts(skill, table, {static_cast<int64_t>(lead), static_cast<int64_t>(c), 0}));
    }
  }
  report["points"] = points_json(skill);
  report["notes"] = skill_notes(skill);
  const SkillJson series(skill, confidence);
  report["scores"] = series.scores();
  report["differences"] = series.differences();
  add_distributions(skill, report);
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace welkin::train
