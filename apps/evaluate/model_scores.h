// SPDX-License-Identifier: Apache-2.0
// Scores of a trained model on the samples of its data set.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "apps/cli/trained_run.h"

namespace welkin::apps {

struct ScoresText {
  int64_t samples = 0;
  std::vector<int64_t> nonfinite;  // indices of samples, or of starts
  std::string table, json;
};

// Makes a table of samples, or of the leads of a rollout. The rank that `speaks` shows the progress.
ScoresText score(const train::TrainedModel& model, const at::Tensor& time_mean, int64_t rollout_steps, bool speaks);
// Reads every crop once more: Fourier transforms and plots of a distribution need whole crops, not sums.
// Every rank takes part; the one that `speaks` writes.
void write_box_statistics(Application& application, const train::TrainedModel& model, const std::string& file,
                          const std::string& plots, bool speaks);

}  // namespace welkin::apps
