// SPDX-License-Identifier: Apache-2.0
#include "verify/layouts/layout_problem.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <limits>
#include <string_view>

#include "core/text.h"
#include "model/base/init.h"

namespace welkin::verify {

// Fields: 35 tokens with patches of 4 points. Of the sizes from 2 to 8 only 5 and 7 divide 35.
model::ModelShape problem_shape(const model::ModelEntry& model) {
  if (model.grid_rank == 3) return {.in_channels = 3, .out_channels = 2, .grid = {8, 8, 8}};
  return {.in_channels = 3, .out_channels = 2, .grid = {20, 28}};
}

std::vector<int64_t> with_grid(std::vector<int64_t> sizes, const model::ModelShape& shape) {
  sizes.insert(sizes.end(), shape.grid.begin(), shape.grid.end());
  return sizes;
}

data::SampleSpec problem_spec(const model::ModelShape& shape) {
  data::SampleSpec spec;
  spec.input.shape = with_grid({shape.in_channels}, shape);
  spec.target.shape = with_grid({shape.out_channels}, shape);
  return spec;
}

config::ModelConfig problem_config(const LayoutCase& c, const model::ModelEntry& model) {
  config::ModelConfig config;
  config.embed_dim = 32;
  config.depth = c.depth;
  config.patch_size = 4;
  config.num_heads = 8;
  config.mlp_ratio = 2.0;
  config.dropout = c.dropout;
  config.qkv = c.joint_qkv ? config::QkvLayout::Joint : config::QkvLayout::Separate;
  config.width = 8;
  config.window_size = {1, 7};
  config.scales = model.grid_rank == 3 ? 3 : 2;  // 20 and 28 points are 5 and 7 at the deepest
  return config;
}

at::Tensor problem_values(const std::string& name, at::IntArrayRef shape, double deviation) {
  at::Tensor values = at::empty(shape, at::kFloat);
  model::fill_normal(values, kProblemSeed, name, deviation);
  return values.to(at::kDouble);
}

StepData problem_data(const LayoutCase& c, const model::ModelShape& shape, const StepPart& part, const data::Region& region,
                      c10::Device device) {
  const auto own = [&](const char* name, int64_t channels) {
    at::Tensor whole = problem_values(cat(name, part.step), with_grid({c.batch, channels}, shape));
    if (c.weights && name == std::string_view("target")) whole = with_holes(whole, part.step);
    at::Tensor values = whole.narrow(0, part.first, part.count);
    for (size_t a = 0; a < shape.grid.size(); ++a) {
      values = values.narrow(2 + static_cast<int64_t>(a), region.begin[a], region.extent[a]);
    }
    return values.contiguous().to(device);
  };
  const int64_t known = shape.in_channels - shape.out_channels;
  const auto numbers = at::TensorOptions(device).dtype(at::kLong);
  return {.step = part.step,
          .input = own("input", shape.in_channels + (c.steps - 1) * known).requires_grad_(),
          .target = own("target", c.steps * shape.out_channels),
          .samples = at::arange(part.first, part.first + part.count, numbers) + part.step * c.batch};
}

model::ModelPtr problem_model(const LayoutSubject& subject, const LayoutCase& c, c10::Device device) {
  model::ModelPtr model = subject.model.build(problem_config(c, subject.model), problem_shape(subject.model));
  model->to(device, at::kDouble);
  for (const auto& parameter : model->named_parameters()) {
    const bool is_norm_weight = parameter.key().find("norm") != std::string::npos && parameter.key().ends_with("weight");
    parameter->set_data(problem_values(parameter.key(), parameter->sizes(), 0.2).add(is_norm_weight ? 1.0 : 0.0).to(device));
  }
  return model;
}

train::ElementWeights problem_weights(const model::ModelShape& shape, c10::Device device) {
  const auto options = at::TensorOptions(device).dtype(at::kDouble);
  train::ElementWeights weights{.holes = true, .channels = at::arange(1, shape.out_channels + 1, options)};
  if (shape.grid.size() == 2) weights.rows = at::arange(1, shape.grid[0] + 1, options);
  return weights;
}

at::Tensor with_holes(const at::Tensor& target, int64_t step) {
  const double hole = std::numeric_limits<double>::quiet_NaN();
  at::Tensor values = target.masked_fill(problem_values(cat("holes", step), target.sizes()).gt(0.67), hole);
  values.select(1, 0).narrow(-1, 0, values.size(-1) / 2).fill_(hole);
  return values;
}

bool has_segments(const LayoutSubject& subject) {
  return !subject.model.build(problem_config({}, subject.model), problem_shape(subject.model))->segments().empty();
}

}  // namespace welkin::verify
