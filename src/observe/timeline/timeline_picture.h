// SPDX-License-Identifier: Apache-2.0
// What a timeline shows: how much of the time the step's thread does nothing, how much of reading and communication is hidden
// behind computing, and a picture of all threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::observe {

struct TimelineSpan {
  std::string name;
  int lane = 0;
  double begin_us = 0, length_us = 0;
};

struct TimelineSpans {
  std::vector<std::string> lanes;  // names of the threads, and of what runs beside them, by lane
  std::vector<TimelineSpan> spans;
};

enum class SpanKind { Step, Compute, Read, Copy, Communication, Profiler, Other };
SpanKind kind_of_span(std::string_view name);  // "forward", "step 3", "read", "data copy in 3", "all_reduce", ...

// Shares of [0, 1]; the time is that from the first step's begin to the last one's end.
struct TimelineShares {
  double seconds = 0;               // without those of the profiler
  double profiler_seconds = 0;      // in which torch's profiler began and wrote: no part of the run
  double idle = 0;                  // of the steps' thread: neither computing nor communicating
  double reading = 0;               // of the time in which some thread reads
  double reading_hidden = 0;        // of the reading: while the steps' thread computes
  double communicating = 0;         // of the time in which anything is sent or waited for
  double communication_hidden = 0;  // of that: while the steps' thread computes and does not wait for what is sent
};
TimelineShares timeline_shares(const TimelineSpans& timeline);

// "idle 12.3 % of 1.234 s; reading 80.0 %, of which 95.0 % behind computing; ...". Communication and the profiler are left
// out where there was none.
std::string shares_line(const TimelineShares& shares);

// One row per thread, time from left to right, colours by kind, the shares as title. SVG; spans narrower than a pixel are merged.
std::string timeline_svg(const TimelineSpans& timeline);

}  // namespace welkin::observe
