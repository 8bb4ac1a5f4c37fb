// SPDX-License-Identifier: Apache-2.0
// The estimates as figures: the lecture's examples, a language model of any size, a run of Welkin.
#pragma once

#include <optional>
#include <vector>

#include "plan/figures.h"
#include "plan/language_model.h"
#include "plan/run_estimate.h"

namespace welkin::plan {

// The worked examples of the ELLIS lecture: days of four sizes of GPT, bytes of 1 and of 175 billion parameters, ZeRO's stages,
// arithmetic intensity, the peak of an A100.
std::vector<Section> lecture_sheet();

struct LanguageModelQuestion {
  GptTraining training;
  std::optional<GptShape> shape{};  // if set, parameters follow from it unless given
  double batch = 0;                 // sequences of a step; 0: not requested
};
std::vector<Section> language_model_sheet(const LanguageModelQuestion& question);

std::vector<Section> run_sheet(const RunEstimate& estimate);

}  // namespace welkin::plan
