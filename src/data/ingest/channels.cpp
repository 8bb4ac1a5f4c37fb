// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/channels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data::ingest {
namespace {

constexpr double kRadiansPerDegree = 3.14159265358979323846 / 180.0;

std::string level_text(double level) {
  if (level == std::floor(level) && std::abs(level) < 1e9) return std::to_string(static_cast<int64_t>(level));
  return cat(level);
}

// "t500" on pressure levels; "u_100" where another kind of level has several; else the plain name.
std::string channel_name(const Variable& variable, double level, size_t num_levels, const std::string& name) {
  if (variable.level_kind == WELKIN_INGEST_LEVEL_HPA) return name + level_text(level);
  if (variable.level_kind == WELKIN_INGEST_LEVEL_OTHER && num_levels > 1) return name + "_" + level_text(level);
  return name;
}

// Levels of every variable, in the order of the files.
std::vector<std::vector<double>> levels_of(const Inventory& inventory) {
  std::vector<std::vector<double>> levels(inventory.variables.size());
  std::vector<std::set<double>> known(inventory.variables.size());
  for (const Field& field : inventory.fields) {
    const auto variable = static_cast<size_t>(field.variable);
    if (known[variable].insert(field.level).second) levels[variable].push_back(field.level);
  }
  return levels;
}

bool is_level(double wanted, double level) { return std::abs(wanted - level) < 1e-6 * std::max(1.0, std::abs(wanted)); }

bool is_wanted_level(const Variable& variable, double level, const std::vector<double>& wanted) {
  if (wanted.empty() || variable.level_kind == WELKIN_INGEST_LEVEL_NONE) return true;
  return std::ranges::any_of(wanted, [&](double w) { return is_level(w, level); });
}

std::string text_of_levels(const std::vector<double>& levels) {
  std::vector<std::string> texts;
  for (const double level : levels) texts.push_back(level_text(level));
  return join(texts, " ");
}

class Planner {
 public:
  Planner(const Inventory& inventory, const Options& options)
      : inventory_(inventory), options_(options), levels_(levels_of(inventory)) {}

  ChannelPlan plan() {
    check_levels();
    if (options_.variables.empty()) {
      take_everything();
    } else {
      for (const auto& choice : options_.variables) take(choice);
    }
    if (plan_.feeds.empty()) fail_empty();
    check_grid();
    check_calendar();
    make_channels();
    check_names();
    return std::move(plan_);
  }

 private:
  const Variable& variable(int32_t index) const { return inventory_.variables[static_cast<size_t>(index)]; }

  std::vector<std::string> all_names() const {
    std::vector<std::string> names;
    for (size_t v = 0; v < inventory_.variables.size(); ++v) {
      const Variable& candidate = inventory_.variables[v];
      names.push_back(candidate.name);
      for (const double level : levels_[v]) {
        const auto name = channel_name(candidate, level, levels_[v].size(), candidate.name);
        if (name != candidate.name) names.push_back(name);
      }
    }
    return names;
  }

  [[noreturn]] void fail_empty() const {
    constexpr size_t kMostReasons = 20;
    std::vector<std::string> sentences;
    if (!inventory_.variables.empty()) sentences.push_back(cat("There are: ", join(all_names(), ", ")));
    std::vector<std::string> reasons;
    for (const LeftOut& out : inventory_.left_out) {
      if (reasons.size() < kMostReasons) reasons.push_back(cat(out.variable, " (", out.file, "): ", out.reason));
    }
    if (inventory_.left_out.size() > kMostReasons)
      reasons.push_back(cat("and ", inventory_.left_out.size() - kMostReasons, " more"));
    if (!reasons.empty()) sentences.push_back(cat("Not taken: ", join(reasons, "; ")));
    if (sentences.empty()) sentences.emplace_back("The files hold no variables");
    throw DataError("ingest", "no field on latitude and longitude is selected", join(sentences, ". "));
  }

  // True for a variable that is asked for as a whole and has levels.
  bool is_levelled_choice(size_t v) const {
    const Variable& candidate = inventory_.variables[v];
    if (candidate.level_kind == WELKIN_INGEST_LEVEL_NONE) return false;
    if (options_.variables.empty()) return candidate.has_time;
    return std::ranges::any_of(options_.variables, [&](const VariableChoice& choice) {
      return choice.source == candidate.name || choice.source == candidate.other_name;
    });
  }

  // Throws for a level that no variable has. Notes the variables that lack some levels.
  void check_levels() {
    std::set<double> found;
    std::vector<std::string> there;
    for (size_t v = 0; v < inventory_.variables.size(); ++v) {
      if (options_.levels.empty() || !is_levelled_choice(v)) continue;
      const std::string& name = inventory_.variables[v].name;
      there.push_back(cat(name, ": ", text_of_levels(levels_[v])));
      std::vector<double> absent;
      for (const double wanted : options_.levels) {
        const bool has = std::ranges::any_of(levels_[v], [&](double level) { return is_level(wanted, level); });
        has ? void(found.insert(wanted)) : absent.push_back(wanted);
      }
      if (!absent.empty())
        plan_.notes.push_back(
            cat("not there: variable=", name, ", levels=", text_of_levels(absent), "; it has ", text_of_levels(levels_[v])));
    }
    if (there.empty() && !inventory_.variables.empty() && !options_.levels.empty()) there.emplace_back("none");
    for (const double wanted : options_.levels) {
      if (found.contains(wanted) || there.empty()) continue;
      throw DataError("ingest", cat("no selected variable has this level: level=", level_text(wanted)),
                      cat("Choose among the levels that there are: ", join(there, "; ")));
    }
  }

  // Throws for a variable that is there, but of which no field can be taken.
  void check_left_out(const std::string& name) const {
    const auto out = std::ranges::find(inventory_.left_out, name, &LeftOut::variable);
    if (out == inventory_.left_out.end()) return;
    throw DataError("ingest", cat("a variable cannot be taken: variable=", name, ", path=", out->file, ", reason=", out->reason),
                    "Choose another, or bring it onto latitude and longitude first");
  }

  void add(int32_t index, double level, const std::string& name) {
    const auto& levels = levels_[static_cast<size_t>(index)];
    plan_.feeds.push_back({index, level, channel_name(variable(index), level, levels.size(), name)});
  }

  void take_everything() {
    for (size_t v = 0; v < inventory_.variables.size(); ++v) {
      const auto index = static_cast<int32_t>(v);
      if (!variable(index).has_time) {
        plan_.notes.push_back(
            cat("left out: variable=", variable(index).name, ", reason=it has no time (name it in --variables to take it)"));
        continue;
      }
      for (const double level : levels_[v]) {
        if (is_wanted_level(variable(index), level, options_.levels)) add(index, level, variable(index).name);
      }
    }
  }

  // Takes a whole variable by either of its names, or one of its levels by the channel's name.
  void take(const VariableChoice& choice) {
    const size_t before = plan_.feeds.size();
    for (size_t v = 0; v < inventory_.variables.size(); ++v) {
      const Variable& candidate = inventory_.variables[v];
      const bool whole = choice.source == candidate.name || choice.source == candidate.other_name;
      for (const double level : levels_[v]) {
        const bool one = choice.source == channel_name(candidate, level, levels_[v].size(), candidate.name);
        if (whole && is_wanted_level(candidate, level, options_.levels)) {
          add(static_cast<int32_t>(v), level, choice.name.empty() ? candidate.name : choice.name);
        } else if (one && !whole) {
          add(static_cast<int32_t>(v), level, candidate.name);
          if (!choice.name.empty()) plan_.feeds.back().name = choice.name;
        }
      }
    }
    if (plan_.feeds.size() > before) return;
    check_left_out(choice.source);
    const auto close = nearest(choice.source, all_names());
    throw DataError("ingest", cat("no field of this name and these levels: variable=", choice.source),
                    close.empty() ? cat("There are: ", join(all_names(), ", ")) : cat("Did you mean: ", join(close, ", ")));
  }

  void check_grid() {
    plan_.grid = variable(plan_.feeds.front().variable).grid;
    for (const Feed& feed : plan_.feeds) {
      const auto& other = variable(feed.variable);
      if (other.grid == plan_.grid || options_.grid.height > 0) continue;
      const auto size = [&](int32_t grid) {
        const Grid& g = inventory_.grids[static_cast<size_t>(grid)];
        return cat(g.latitude.size(), "x", g.longitude.size(), " from ", g.latitude.front(), " N ", g.longitude.front(), " E");
      };
      throw DataError("ingest",
                      cat("the channels lie on different grids: channel=", plan_.feeds.front().name, ", grid=", size(plan_.grid),
                          ", channel=", feed.name, ", grid=", size(other.grid)),
                      "Choose channels of one grid with --variables, or bring all onto a new one with --grid");
    }
  }

  void check_calendar() {
    bool found = false;
    for (const Feed& feed : plan_.feeds) {
      if (!variable(feed.variable).has_time) continue;
      if (found && variable(feed.variable).calendar != plan_.calendar) {
        throw DataError("ingest",
                        cat("the channels have different calendars: channel=", feed.name,
                            ", calendar=", name_of(variable(feed.variable).calendar), ", before=", name_of(plan_.calendar)),
                        "Ingest them apart");
      }
      plan_.calendar = variable(feed.variable).calendar;
      found = true;
    }
    if (!found) throw DataError("ingest", "no selected channel has a time", "Select at least one with a time axis");
  }

  void make_channels() {
    std::set<std::string> circular(options_.circular.begin(), options_.circular.end());
    for (size_t i = 0; i < plan_.feeds.size(); ++i) {
      const Feed& feed = plan_.feeds[i];
      const auto index = static_cast<int32_t>(i);
      const std::string& units = variable(feed.variable).units;
      if (circular.erase(feed.name) > 0) {
        if (!units.starts_with("deg")) {
          throw DataError("ingest", cat("a circular channel must be in degrees: channel=", feed.name, ", units=", units),
                          "Leave it out of --circular");
        }
        plan_.channels.push_back({feed.name + "_sin", "1", index, Derivation::Sine});
        plan_.channels.push_back({feed.name + "_cos", "1", index, Derivation::Cosine});
      } else {
        plan_.channels.push_back({feed.name, units, index, Derivation::Value});
      }
    }
    if (circular.empty()) return;
    throw DataError("ingest", cat("no such channel: circular=", *circular.begin()), "Use the names of the output's channels");
  }

  void check_names() const {
    std::map<std::string, int32_t> seen;
    for (const Channel& channel : plan_.channels) {
      const auto [place, is_new] = seen.emplace(channel.name, channel.feed);
      if (!is_new) refuse_name(channel.name, variable_of(place->second), variable_of(channel.feed));
    }
  }

  const Variable& variable_of(int32_t feed) const { return variable(plan_.feeds[static_cast<size_t>(feed)].variable); }

  [[noreturn]] static void refuse_name(const std::string& name, const Variable& first, const Variable& second) {
    if (first.name == second.name && first.level_type == second.level_type && first.units != second.units) {
      throw DataError(
          "ingest",
          cat("one variable has different units in its files: channel=", name, ", units=", first.units, ", units=", second.units),
          "Bring the files into one unit, or ingest them apart");
    }
    throw DataError("ingest",
                    cat("two channels of one name: channel=", name, ", variables=", first.name, " and ", second.name,
                        ", level_types=", first.level_type, " and ", second.level_type),
                    "Rename one (--variables source:name), or select fewer");
  }

  const Inventory& inventory_;
  const Options& options_;
  std::vector<std::vector<double>> levels_;
  ChannelPlan plan_;
};

}  // namespace

ChannelPlan plan_channels(const Inventory& inventory, const Options& options) { return Planner(inventory, options).plan(); }

void derive(Derivation derivation, std::span<const float> feed, std::span<float> out) {
  switch (derivation) {
    case Derivation::Value:
      std::ranges::copy(feed, out.begin());
      return;
    case Derivation::Sine:
      std::ranges::transform(feed, out.begin(), [](float v) { return static_cast<float>(std::sin(v * kRadiansPerDegree)); });
      return;
    case Derivation::Cosine:
      std::ranges::transform(feed, out.begin(), [](float v) { return static_cast<float>(std::cos(v * kRadiansPerDegree)); });
      return;
    case Derivation::Mask:
      std::ranges::transform(feed, out.begin(), [](float v) { return std::isnan(v) ? 0.0f : 1.0f; });
      return;
  }
}

}  // namespace welkin::data::ingest
