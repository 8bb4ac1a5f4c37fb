// SPDX-License-Identifier: Apache-2.0
// libFuzzer: what `welkin report` reads beside event files: the log, config.yaml, status.json and events.jsonl of a run folder,
// and the scores of `welkin evaluate`. The first byte says which; no text may crash it, and none is shown at any length.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "observe/report/run_facts.h"
#include "observe/report/score_file.h"

namespace {

namespace observe = welkin::observe;

constexpr size_t kLongestShown = 1 << 16;

void look_at(const observe::RunFacts& facts) {
  for (const auto& [name, value] : facts.environment) {
    if (name.size() > kLongestShown || value.size() > kLongestShown) std::abort();
  }
  for (const auto& [name, value] : facts.configuration) {
    if (name.size() > kLongestShown || value.size() > kLongestShown) std::abort();
  }
  for (const observe::RunEvent& event : facts.events) {
    if (event.name.empty() || event.text.size() > kLongestShown) std::abort();
  }
  if (static_cast<size_t>(facts.num_events) < facts.events.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      look_at(observe::run_facts_of({.log = text}));
      break;
    case 1:
      look_at(observe::run_facts_of({.configuration = text}));
      break;
    case 2:
      look_at(observe::run_facts_of({.status = text}));
      break;
    case 3:
      look_at(observe::run_facts_of({.events = text}));
      break;
    default:
      for (const observe::ScoreSeries& series : observe::scores_of(text, "fuzz")) {
        if (series.values.size() != series.leads.size()) std::abort();
      }
  }
  return 0;
}
