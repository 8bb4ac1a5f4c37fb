// SPDX-License-Identifier: Apache-2.0
#include "plan/language_model.h"

namespace welkin::plan {
namespace {

constexpr double kSecondsPerDay = 86400;

}  // namespace

double gpt_parameters(const GptShape& shape) {
  const double l = shape.layers, h = shape.hidden;
  return 12 * l * h * h * (1 + 13 / (12 * h) + (shape.vocabulary + shape.sequence) / (12 * l * h));
}

double gpt_step_flops(const GptShape& shape, double batch) {
  const double l = shape.layers, h = shape.hidden, s = shape.sequence;
  return 96 * batch * s * l * h * h * (1 + s / (6 * h) + shape.vocabulary / (16 * l * h));
}

double training_days(const GptTraining& training) {
  return training.flops_per_parameter * training.tokens * training.parameters / (training.devices * training.flops_per_second) /
         kSecondsPerDay;
}

}  // namespace welkin::plan
