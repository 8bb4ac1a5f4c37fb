// SPDX-License-Identifier: Apache-2.0
// Scores of a forecast as a table for people and as JSON for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/skill/skill_run.h"

namespace welkin::train {

struct Confidence {
  int64_t replicates = 200, block = 1;  // of the bootstrap (bootstrap.h)
  uint64_t seed = 0;
};

// What a reader has to know of the scores, a sentence each: channels that are missing, starts without truth, starts that are not
// finite, baselines of fewer starts.
std::vector<std::string> skill_notes(const Skill& skill);

// Scores of every lead of each channel, over the first region and all seasons, with the baselines' RMSE.
std::string skill_table_text(const Skill& skill);

// {"starts", "members", "channels": {name: unit}, "lead_hours": [...] ("lead_steps" of months), "regions", "seasons",
// "bootstrap": {"replicates", "block"},
//  "scores": [{"forecast", "channel", "region", "season", "score", "values", "low", "high": one per lead}],
//  "differences": the same of forecast minus each other one, paired, "scored_starts": {forecast: {channel: one per lead}},
//  "points": [{"channel", "region", "with_value", "all": one per lead}], "notes": [skill_notes()], "rank_histograms",
//  "reliability", "spectra": [...]}. Numbers
// that are not finite are null.
std::string skill_json(const Skill& skill, const Confidence& confidence);

}  // namespace welkin::train
