// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling/link_figure.h"

#include <vector>

#include "bench/scaling/bench_timing.h"

namespace welkin::bench {
namespace {

constexpr int64_t kLinkRepeats = 7;
constexpr int64_t kLinkTurns = 11;
constexpr double kUnlimited = 1e15;  // bytes per second

}  // namespace

LinkFigure measure_link(const std::function<void()>& step, const std::function<void()>& silent, double link_share,
                        const parallel::Group& all, parallel::EmulatedLink& link) {
  link.latency_s = 0;
  link.bytes_per_second = kUnlimited;
  step();
  silent();
  LinkFigure figure;
  const int64_t before = link.bytes;
  step();
  figure.bytes_per_step = link.bytes - before;
  std::vector<double> computing;
  for (int64_t i = 0; i < kLinkRepeats; ++i) computing.push_back(seconds_together(all, silent));
  figure.link_s = link_share * median_of(computing);
  const auto time = [&](const std::function<void()>& work, double bytes_per_second) {
    link.bytes_per_second = bytes_per_second;
    return step_together(all, work);
  };
  const double rate = static_cast<double>(figure.bytes_per_step) / figure.link_s;
  const LinkTurns turns = measure_turns(
      kLinkTurns, [&] { return time(step, rate); }, [&] { return time(silent, kUnlimited); },
      [&] { return time(step, kUnlimited); });
  figure.step_s = turns.step_s;
  figure.compute_s = turns.compute_s;
  figure.gloo_step_s = turns.gloo_step_s;
  figure.added_s = turns.added_s;
  return figure;
}

nlohmann::ordered_json link_json(const LinkFigure& figure) {
  return {{"bytes_per_step", figure.bytes_per_step},  {"link_s", figure.link_s}, {"compute_s", figure.compute_s},
          {"gloo_step_s", figure.gloo_step_s},        {"step_s", figure.step_s}, {"added_s", figure.added_s},
          {"added_fraction", figure.added_fraction()}};
}

}  // namespace welkin::bench
