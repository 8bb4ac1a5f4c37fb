// SPDX-License-Identifier: Apache-2.0
// What a link adds to a step of a model that ranks share: the one measurement behind several figures of docs/results/scaling.md.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "parallel/comm/group.h"
#include "parallel/comm/link.h"

namespace welkin::bench {

// Of forward and backward pass; medians over repetitions of the slowest rank.
struct LinkFigure {
  int64_t bytes_per_step = 0;  // of this rank's calls, a gather's those of the whole
  double link_s = 0;           // for them, one after the other
  double compute_s = 0;        // a step whose calls send nothing
  double gloo_step_s = 0;      // by Gloo alone
  double step_s = 0;           // over the link
  // What the link adds to Gloo's own time, over its time. Below 1 as far as calls are hidden: behind computing, or behind Gloo.
  double added_fraction() const { return (step_s - gloo_step_s) / link_s; }
};

// `step` sends over the link, which is that of all ranks' connection; `silent` is the same step by groups that send nothing. The
// link takes `link_share` of the time of the latter. Steps are made in turns.
LinkFigure measure_link(const std::function<void()>& step, const std::function<void()>& silent, double link_share,
                        const parallel::Group& all, parallel::EmulatedLink& link);

nlohmann::ordered_json link_json(const LinkFigure& figure);

}  // namespace welkin::bench
