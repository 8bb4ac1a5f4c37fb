// SPDX-License-Identifier: Apache-2.0
// The JSON files of `welkin evaluate`: scores by channel, for one step, a rollout, or forecast files by lead and region.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::observe {

// One score of one forecast over its leads.
struct ScoreSeries {
  std::string source{};    // the file's label
  std::string forecast{};  // model, persistence, climatology, ...
  std::string channel{};
  std::string score{};      // rmse, acc, ... with its unit
  std::string place{};      // region and season; empty: everything
  std::string lead_unit{};  // "steps" or "hours"
  std::vector<double> leads{}, values{};
  std::vector<double> low{}, high{};  // of the interval, one per lead; empty: no interval. Not finite: unknown
};

// `argument` is PATH or LABEL=PATH. DataError for other files.
std::vector<ScoreSeries> read_scores(const std::string& argument);
// Reads the text of such a file, labelled `source`; empty for other texts.
std::vector<ScoreSeries> scores_of(std::string_view text, const std::string& source);

}  // namespace welkin::observe
