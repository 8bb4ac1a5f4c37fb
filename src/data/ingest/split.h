// SPDX-License-Identifier: Apache-2.0
// Assigns times to files: training, validation and test parts by time, gapless segments, years.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/ingest/options.h"
#include "data/ingest/sequences.h"
#include "data/ingest/time_axis.h"

namespace welkin::data::ingest {

enum class Part { Train, Valid, Test };
std::string_view name_of(Part part);

// A file to be written: times [begin, end) of one sequence, gapless.
struct OutputFile {
  Part part = Part::Train;
  std::string name;     // "2019.h5", "member003_2019.h5", "segment01_2019.h5": the stem ends in the year of the first time
  size_t sequence = 0;  // index into Sequences::members
  int64_t begin = 0, end = 0;
};

struct OutputPlan {
  TimeStep step;
  std::vector<OutputFile> files;
  std::vector<std::string> notes;  // gaps, pieces left out
};

// Members of one time always fall into the same part. Throws DataError when a boundary lies outside the data, a part stays empty,
// a gap is an error by policy, or a year has no four digits.
OutputPlan plan_output(const Sequences& sequences, Calendar calendar, const Options& options);

}  // namespace welkin::data::ingest
