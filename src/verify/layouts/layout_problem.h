// SPDX-License-Identifier: Apache-2.0
// The small problem on which layouts are compared with one process: a model whose weights are all random, its samples and
// targets.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/sample/dataset.h"
#include "train/learn/weighted_loss.h"
#include "verify/layouts/layout_check.h"

namespace welkin::verify {

inline constexpr uint64_t kProblemSeed = 11;
inline constexpr int64_t kProblemSteps = 3;

// Fields of 20 x 28 points or boxes of 8^3 cells, 3 channels in and 2 out.
model::ModelShape problem_shape(const model::ModelEntry& model);
config::ModelConfig problem_config(const LayoutCase& c, const model::ModelEntry& model);
data::SampleSpec problem_spec(const model::ModelShape& shape);

// (n, ...) for the dims of the grid.
std::vector<int64_t> with_grid(std::vector<int64_t> sizes, const model::ModelShape& shape);

// Normal values that are determined by the name, float64.
at::Tensor problem_values(const std::string& name, at::IntArrayRef shape, double deviation = 1.0);

// Samples of a step, with all their model steps, and their places in the run. The input has a gradient.
struct StepData {
  int64_t step;
  at::Tensor input, target, samples;
};
struct StepPart {
  int64_t step = 0, first = 0, count = 0;  // samples of the step
};
StepData problem_data(const LayoutCase& c, const model::ModelShape& shape, const StepPart& part, const data::Region& region,
                      c10::Device device);

// A model in float64. Every parameter is random: zeros and ones would hide errors in biases and norms.
model::ModelPtr problem_model(const LayoutSubject& subject, const LayoutCase& c, c10::Device device);

// True if a pipeline can cut the model.
bool has_segments(const LayoutSubject& subject);

// Weights with points without a value, and with different channels and rows.
train::ElementWeights problem_weights(const model::ModelShape& shape, c10::Device device);

// Removes half of the first channel, so that ranks which share a sample have very different numbers of points, and a quarter of
// the rest.
at::Tensor with_holes(const at::Tensor& target, int64_t step);

}  // namespace welkin::verify
