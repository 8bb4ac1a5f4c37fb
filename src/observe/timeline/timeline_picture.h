// SPDX-License-Identifier: Apache-2.0
// Figures of a timeline: the idle fraction of the step's thread, the fractions of reading and communication hidden
// behind computation, and a picture of all threads.
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
  std::vector<std::string> lanes;  // names of the threads and of the activity beside them, by lane
  std::vector<TimelineSpan> spans;
};

enum class SpanKind { Step, Compute, Read, Copy, Communication, Profiler, Other };
SpanKind kind_of_span(std::string_view name);  // "forward", "step 3", "read", "data copy in 3", "all_reduce", ...

// Fractions in [0, 1] of the time from the begin of the first step to the end of the last.
struct TimelineShares {
  double seconds = 0;               // without the time of the profiler
  double profiler_seconds = 0;      // in which torch's profiler started and wrote: not part of the run
  double idle = 0;                  // fraction in which the steps' thread neither computes nor communicates
  double reading = 0;               // fraction of the time in which any thread reads
  double reading_hidden = 0;        // fraction of the reading while the steps' thread computes
  double communicating = 0;         // fraction of the time in which anything is sent or waited for
  double communication_hidden = 0;  // fraction of that while the steps' thread computes and does not wait
};
TimelineShares timeline_shares(const TimelineSpans& timeline);

// "idle 12.3 % of 1.234 s; reading 80.0 %, of which 95.0 % behind computing; ...". Communication and the profiler are left
// out if they took no time.
std::string shares_line(const TimelineShares& shares);

// One row per thread, time from left to right, colours by kind, the figures as title. SVG; spans below a pixel are merged.
std::string timeline_svg(const TimelineSpans& timeline);

}  // namespace welkin::observe
