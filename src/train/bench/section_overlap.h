// SPDX-License-Identifier: Apache-2.0
// A figure of docs/results/scaling.md: how much of what tensor parallelism sends within a step is hidden behind matrix products,
// over an emulated link.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "model/registry.h"
#include "parallel/link.h"
#include "parallel/world.h"

namespace welkin::train::bench {

struct SectionProblem {
  int64_t width = 384, depth = 6;  // of a ViT
  int64_t samples = 4;             // 288 tokens each, in the hands of all ranks
  bool sequence_parallel = false;
  double link_share = 0.5;  // of the time of a step's computation: what the link needs for a step's bytes
};

// Of forward and backward pass; medians over repetitions of the slowest rank.
struct SectionFigure {
  int64_t bytes_per_step = 0;  // of this rank's calls, a gather's those of the whole
  double link_s = 0;           // for them, one after the other
  double compute_s = 0;        // a step whose calls send nothing
  double gloo_step_s = 0;      // by Gloo alone
  double step_s = 0;           // over the link
  double hidden_share() const;
};

// All ranks of `world` share one ViT. `link` is that of their connection.
SectionFigure measure_sections(const SectionProblem& problem, const model::ModelEntry& vit, parallel::World& world,
                               parallel::EmulatedLink& link);

nlohmann::ordered_json section_json(const SectionFigure& figure);

}  // namespace welkin::train::bench
