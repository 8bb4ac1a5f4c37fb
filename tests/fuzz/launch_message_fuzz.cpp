// SPDX-License-Identifier: Apache-2.0
// libFuzzer: what the processes of an elastic job write for each other. The first byte says what it is; no text may crash it, and
// what is read is written as the same thing.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "launch/elastic/next_round.h"
#include "launch/elastic/round.h"

namespace {

namespace launch = welkin::launch;

void read_round(const std::string& text) {
  const auto round = launch::parse_round(7, text);
  if (!round) return;
  const auto again = launch::parse_round(7, launch::text_of(*round));
  if (!again || again->members != round->members || again->has_begun != round->has_begun) std::abort();
}

void read_slot(const std::string& text) {
  const auto slot = launch::parse_slot(text);
  if (!slot) return;
  const auto again = launch::parse_slot(launch::text_of(*slot));
  if (!again || again->id != slot->id || again->state != slot->state || again->code != slot->code) std::abort();
}

void read_now(const std::string& text) {
  const auto now = launch::parse_now(text);
  if (!now) return;
  const auto again = launch::parse_now(launch::now_text(now->number, now->state));
  if (!again || again->number != now->number || again->state != now->state) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      read_round(text);
      break;
    case 1:
      read_slot(text);
      break;
    case 2:
      read_now(text);
      break;
    default:
      try {
        const launch::ElasticLimits limits = launch::parse_limits(text);
        if (limits.least < 1 || limits.least > limits.most) std::abort();
      } catch (const welkin::ConfigError&) {  // the one legal way to refuse
      }
  }
  return 0;
}
