// SPDX-License-Identifier: Apache-2.0
// Cuts a model's segments into the stages of a pipeline: by their costs, or as a user says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/model_cost.h"
#include "model/base/segment.h"

namespace welkin::parallel {

// Segments begin ... end - 1.
struct StageRange {
  int64_t begin = 0, end = 0;

  bool operator==(const StageRange&) const = default;
};

// Training FLOPs of the layers in each segment; 1 for each if the model does not provide costs.
std::vector<double> segment_costs(const std::vector<model::Segment>& segments, const model::ModelCost& cost);

// Non-empty stages in order, with the least possible cost of the most expensive one. ConfigError if there are fewer
// segments than stages.
std::vector<StageRange> balanced_stages(const std::vector<double>& costs, int64_t stages);

// Parses "0-3,4-7": the first and the last segment of each stage, or one number for a single one. ConfigError unless these are
// all segments, each once and in order, in `stages` stages.
std::vector<StageRange> stages_of_text(const std::string& text, int64_t segments, int64_t stages);

// "0-3,4-7".
std::string text_of(const std::vector<StageRange>& stages);

// The ranks of a pipeline, where rank r has the stages r, r + ranks, ..., with a segment that may read the model's
// input.
std::vector<int64_t> input_readers(const std::vector<model::Segment>& segments, const std::vector<StageRange>& stages,
                                   int64_t ranks);

}  // namespace welkin::parallel
