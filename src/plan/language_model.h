// SPDX-License-Identifier: Apache-2.0
// Cost of a language model by the formulas of the ELLIS lecture (Larger-scale model training on multi-GPU systems, 2023), which
// takes them from Narayanan et al., "Efficient large-scale language model training on GPU clusters", SC21.
#pragma once

#include <cstdint>

namespace welkin::plan {

struct GptShape {
  double layers = 0;
  double hidden = 0;
  double sequence = 2048;
  double vocabulary = 51200;
};

// P = 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)): equation 2 of the paper.
double gpt_parameters(const GptShape& shape);

// FLOPs of one training step with all activations recomputed: F = 96 B s l h^2 (1 + s/(6 h) + V/(16 l h)).
double gpt_step_flops(const GptShape& shape, double batch);

struct GptTraining {
  double tokens = 0;
  double parameters = 0;
  double devices = 1;
  double flops_per_second = 0;     // achieved by each device
  double flops_per_parameter = 8;  // and token: 2 forward, 4 backward, 2 more if the forward pass is recomputed
};

double training_days(const GptTraining& training);

}  // namespace welkin::plan
