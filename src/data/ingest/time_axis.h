// SPDX-License-Identifier: Apache-2.0
// Times as a sequence: its step, its gaps, and the gapless segments between them, since no pair of states may cross a gap.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/sample/calendar.h"

namespace welkin::data::ingest {

// A step of seconds, or of calendar months (monthly means, whose middles are 28 to 31 days apart).
struct TimeStep {
  int64_t seconds = 0;
  int64_t months = 0;
};

struct Segment {
  int64_t begin = 0, end = 0;  // indices into the times
  int64_t size() const { return end - begin; }
};

struct Gap {
  int64_t after = 0, before = 0;  // the times at its sides
  int64_t missing = 0;            // steps left out, 0 when the times are off the grid of steps
};

// The commonest distance between neighbours; in months when all neighbours are whole months apart but not equally many seconds.
// `times` ascend without duplicates. Zero for fewer than two times.
TimeStep find_step(std::span<const int64_t> times, Calendar calendar);

bool is_next(int64_t time, int64_t next, const TimeStep& step, Calendar calendar);

std::vector<Segment> find_segments(std::span<const int64_t> times, const TimeStep& step, Calendar calendar);
std::vector<Gap> find_gaps(std::span<const int64_t> times, const TimeStep& step, Calendar calendar);

// "6 h", "1 month"
std::string describe(const TimeStep& step);

}  // namespace welkin::data::ingest
