// SPDX-License-Identifier: Apache-2.0
// libFuzzer: short texts that say what a run does: faults on purpose, the profiler's schedule, regions of scores. The first byte
// says which; no text may crash it, and what is accepted lies within its bounds.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "train/inject/faults.h"
#include "train/profile/step_window.h"
#include "train/skill/regions.h"

namespace {

namespace train = welkin::train;

void read_faults(const std::string& text) {
  if (text.find('/') != std::string::npos || text.find('.') != std::string::npos) return;  // a file of this machine
  constexpr int64_t kRanks = 4;
  for (const train::Fault& fault : train::parse_faults(text, kRanks)) {
    if (fault.step < 1 || fault.steps < 1 || fault.bit > 31 || fault.rank.value_or(0) >= kRanks) std::abort();
    (void)train::name_of(fault.kind);
  }
}

void read_schedule(const std::string& text) {
  const train::ProfileSchedule schedule = train::fitted(train::parse_profile_schedule(text), 100);
  if (schedule.active < 1 || schedule.wait < 0 || schedule.warmup < 0) std::abort();
  for (const int64_t index : {int64_t{0}, int64_t{7}, int64_t{1} << 40}) (void)train::phase_of(schedule, index);
}

void read_regions(const std::string& text) {
  for (const train::ScoreRegion& region : train::parse_regions(text)) {
    const auto weights = train::region_weights(region, {-60, 0, 60}, {0, 120, 240});
    for (const double weight : weights) {
      if (!(weight >= 0)) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 3) {
      case 0:
        read_faults(text);
        break;
      case 1:
        read_schedule(text);
        break;
      default:
        read_regions(text);
    }
  } catch (const welkin::ConfigError&) {  // the one legal way to refuse
  }
  return 0;
}
