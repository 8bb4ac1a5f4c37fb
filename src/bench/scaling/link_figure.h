// SPDX-License-Identifier: Apache-2.0
// The time that a link adds to a step of a model that ranks share, for several figures of docs/results/scaling.md.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "parallel/comm/group.h"
#include "parallel/comm/link.h"

namespace welkin::bench {

// Forward and backward pass; medians over repetitions of the slowest rank.
struct LinkFigure {
  int64_t bytes_per_step = 0;  // of this rank's calls; a gather counts the whole tensor
  double link_s = 0;           // for these bytes, one call after the other
  double compute_s = 0;        // a step whose calls send nothing
  double gloo_step_s = 0;      // over Gloo alone
  double step_s = 0;           // over the link
  double added_s = 0;          // that a step waits longer over the link (bench_timing.h)
  // Over the link's time. Below 1 if calls are hidden behind computation or behind Gloo.
  double added_fraction() const { return added_s / link_s; }
};

// `step` sends over the link, which all ranks' connection uses; `silent` is the same step with groups that send nothing. The
// link takes `link_share` of the silent step's time. Both steps alternate.
LinkFigure measure_link(const std::function<void()>& step, const std::function<void()>& silent, double link_share,
                        const parallel::Group& all, parallel::EmulatedLink& link);

nlohmann::ordered_json link_json(const LinkFigure& figure);

}  // namespace welkin::bench
