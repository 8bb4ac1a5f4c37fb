// SPDX-License-Identifier: Apache-2.0
// Timing helpers for figures that several ranks measure together.
#pragma once

#include <ATen/ops/full.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/stopwatch.h"
#include "parallel/comm/collectives.h"

namespace welkin::bench {

inline double of_slowest(const parallel::Group& group, double seconds) {
  return parallel::all_reduce(group, at::full({1}, seconds, at::kDouble), parallel::Reduction::Max).item<double>();
}

inline double median_of(std::vector<double> values) {
  const auto middle = static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  return *(values.begin() + middle);
}

// Seconds that the slowest member takes for `work`, which all members begin together.
inline double seconds_together(const parallel::Group& group, const std::function<void()>& work) {
  parallel::barrier(group);
  const Stopwatch watch;
  work();
  return of_slowest(group, watch.seconds());
}

// Medians over turns of the slowest member's seconds.
struct LinkTurns {
  double step_s = 0;       // over the link
  double gloo_step_s = 0;  // over Gloo alone
  double compute_s = 0;    // without exchange
  double added_s = 0;      // that a turn's steps over the link take longer than those over Gloo
};

// Each turn runs all three and, in the reverse order, again: a machine that becomes steadily slower or faster adds nothing to
// `added_s`. Each gives the seconds of the slowest member.
inline LinkTurns measure_turns(int64_t turns, const std::function<double()>& over_link, const std::function<double()>& alone,
                               const std::function<double()>& by_gloo) {
  std::vector<double> link_s, alone_s, gloo_s, added_s;
  for (int64_t turn = 0; turn < turns; ++turn) {
    link_s.push_back(over_link());
    alone_s.push_back(alone());
    gloo_s.push_back(by_gloo());
    gloo_s.push_back(by_gloo());
    alone_s.push_back(alone());
    link_s.push_back(over_link());
    const auto of_turn = [](const std::vector<double>& seconds) { return (seconds.end()[-1] + seconds.end()[-2]) / 2; };
    added_s.push_back(of_turn(link_s) - of_turn(gloo_s));
  }
  return {.step_s = median_of(link_s),
          .gloo_step_s = median_of(gloo_s),
          .compute_s = median_of(alone_s),
          .added_s = median_of(added_s)};
}

}  // namespace welkin::bench
