// SPDX-License-Identifier: Apache-2.0
// Timing helpers for figures that several ranks measure together.
#pragma once

#include <ATen/ops/full.h>
#include <time.h>

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

// Of one step of all members.
struct StepTime {
  double seconds = 0;   // of the slowest member
  double waited_s = 0;  // that the calling thread was not on a core, of the member that waited least: the others also wait for it
};

inline double thread_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Times a step that all members begin together and that computes on the calling thread alone.
inline StepTime step_together(const parallel::Group& group, const std::function<void()>& step) {
  parallel::barrier(group);
  const double cpu = thread_cpu_seconds();
  const Stopwatch watch;
  step();
  const double seconds = watch.seconds(), waited = seconds - (thread_cpu_seconds() - cpu);
  return {.seconds = of_slowest(group, seconds), .waited_s = -of_slowest(group, -waited)};
}

// Medians over turns.
struct LinkTurns {
  double step_s = 0;       // over the link
  double gloo_step_s = 0;  // over Gloo alone
  double compute_s = 0;    // without exchange
  double added_s = 0;      // that a turn's steps over the link wait longer than those over Gloo
};

// Each turn runs all three and, in the reverse order, again. A step's time varies by as much as a link adds, and on a shared
// host by more; so waits are compared, and computation that was slower at times adds nothing to `added_s`.
inline LinkTurns measure_turns(int64_t turns, const std::function<StepTime()>& over_link, const std::function<StepTime()>& alone,
                               const std::function<StepTime()>& by_gloo) {
  std::vector<double> link_s, alone_s, gloo_s, added_s;
  for (int64_t turn = 0; turn < turns; ++turn) {
    const StepTime link = over_link(), silent = alone(), gloo = by_gloo(), again_gloo = by_gloo(), again_silent = alone(),
                   again_link = over_link();
    link_s.insert(link_s.end(), {link.seconds, again_link.seconds});
    alone_s.insert(alone_s.end(), {silent.seconds, again_silent.seconds});
    gloo_s.insert(gloo_s.end(), {gloo.seconds, again_gloo.seconds});
    added_s.push_back((link.waited_s + again_link.waited_s - gloo.waited_s - again_gloo.waited_s) / 2);
  }
  return {.step_s = median_of(link_s),
          .gloo_step_s = median_of(gloo_s),
          .compute_s = median_of(alone_s),
          .added_s = median_of(added_s)};
}

}  // namespace welkin::bench
