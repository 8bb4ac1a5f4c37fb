// SPDX-License-Identifier: Apache-2.0
#include "plan/failure_sheet.h"

#include <algorithm>
#include <cmath>

#include "core/fault/failure_model.h"
#include "core/text.h"

namespace welkin::plan {

Section failure_sheet(const FailureQuestion& question) {
  constexpr double kHour = 3600, kPercent = 100;
  const FailureCosts costs{.mtbf_s = question.mtbf_hours * kHour / question.nodes,
                           .held_s = question.save_seconds,
                           .written_s = question.write_seconds.value_or(question.save_seconds),
                           .restart_s = question.restart_seconds};
  const double interval = std::max(daly_interval_s(costs), costs.written_s - costs.held_s);
  const double useful = kPercent * goodput(costs, interval);
  const double saving = useful * costs.held_s / interval;
  Section section{.title = cat("failures of ", question.nodes, question.nodes == 1 ? " node" : " nodes"),
                  .figures = {{"a failure every", costs.mtbf_s / kHour, "hours", 2,
                               cat("a node fails every ", question.mtbf_hours, " hours")},
                              {"interval by Young", young_interval_s(costs), "s", 1, "sqrt(2 save failure)"},
                              {"interval by Daly", daly_interval_s(costs), "s", 1, "the one that checkpoint_interval auto takes"},
                              {"goodput", useful, "%", 2, "at Daly's interval: share of the time that trains and is not lost"},
                              {"spent on checkpoints", saving, "%", 2, cat(question.save_seconds, " s each")},
                              {"lost by failures", kPercent - useful - saving, "%", 2,
                               cat("starts of ", question.restart_seconds, " s, and steps done again")}}};
  if (question.step_seconds) {
    section.figures.insert(section.figures.begin() + 3,
                           {"interval in steps", std::max(1.0, std::round(interval / *question.step_seconds)), "steps", 0,
                            cat(*question.step_seconds, " s each")});
  }
  return section;
}

}  // namespace welkin::plan
