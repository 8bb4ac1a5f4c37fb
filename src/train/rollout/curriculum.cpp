// SPDX-License-Identifier: Apache-2.0
#include "train/rollout/curriculum.h"

#include <vector>

#include "data/sample/sequences.h"

namespace welkin::train {

int64_t steps_at(const config::LossConfig& config, int64_t epoch, int64_t iterations) {
  const std::vector<int64_t>& numbers = config.multistep.numbers;
  const bool by_iteration = !config.multistep_iters.empty();
  int64_t left = by_iteration ? iterations : epoch;
  size_t part = 0;
  for (const int64_t length : by_iteration ? config.multistep_iters : config.multistep_epochs) {
    if (left < length) break;
    left -= length;
    ++part;
  }
  return numbers[part];
}

bool has_sequences(const config::RunConfig& config, const data::SampleSpec& spec) {
  return config.loss.multistep.most() > 1 && spec.target.shape.size() == 3;
}

data::SampleSpec longest_sample(const config::RunConfig& config, const data::SampleSpec& spec) {
  return has_sequences(config, spec) ? data::sequence_spec(spec, config.loss.multistep.most()) : spec;
}

int64_t ensemble_members(const config::RunConfig& config, const data::SampleSpec& spec) {
  return spec.target.shape.size() == 3 ? config.loss.ensemble_members : 1;
}

}  // namespace welkin::train
