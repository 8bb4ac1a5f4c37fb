// SPDX-License-Identifier: Apache-2.0
// Muon for weights, AdamW for the rest.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/glob.h"
#include "train/optim/optimizer.h"

namespace welkin::train {
namespace {

// Jordan's coefficients of the quintic iteration, and the least norm to divide by.
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kLeastNorm = 1e-7;

// About U V^T of x = U S V^T: singular values between 0.7 and 1.2 after five steps.
at::Tensor orthogonalised(const at::Tensor& matrix, int64_t steps) {
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = is_tall ? matrix.t() : matrix;
  x = x / x.norm().clamp_min(kLeastNorm);
  for (int64_t step = 0; step < steps; ++step) {
    const at::Tensor gram = at::mm(x, x.t());
    x = at::addmm(x, at::addmm(gram, gram, gram, kB, kC), x, kA);
  }
  return is_tall ? x.t() : x;
}

class Muon : public Optimizer {
 public:
  Muon(const config::RunConfig& config, std::vector<OptimizerParameter> parameters) : config_(config.optimizer) {
    std::vector<OptimizerParameter> rest;
    for (size_t number = 0; number < parameters.size(); ++number) {
      OptimizerParameter& parameter = parameters[number];
      const bool is_matrix = takes(parameter);
      if (is_matrix) numbers_.push_back(number);
      (is_matrix ? matrices_ : rest).push_back(std::move(parameter));
    }
    for (const OptimizerParameter& matrix : matrices_) average_.push_back(state_like(matrix.value));
    rest_ = adamw(config, std::move(rest));
  }

  void step(const StepInputs& inputs) override {
    const at::NoGradGuard no_grad;
    rest_->step(inputs);
    const bool on_cpu = inputs.found_inf.is_cpu();
    if (on_cpu && inputs.found_inf.item<float>() != 0) return;  // spares the products
    std::vector<size_t> rows, parts;
    for (size_t row = 0; row < matrices_.size(); ++row) {
      if (matrices_[row].value.grad().defined()) (matrices_[row].is_part ? parts : rows).push_back(row);
    }
    for (const size_t row : rows) update(inputs, row, direction(row, mixed(inputs, row)));
    if (!parts.empty()) update_parts(inputs, parts);
  }

  bool takes_gradient_scale() const override { return true; }

  std::vector<NamedState> states() override {
    std::vector<NamedState> all = rest_->states();
    for (size_t row = 0; row < matrices_.size(); ++row) all.push_back({"momentum." + matrices_[row].name, average_[row]});
    return all;
  }

 private:
  bool takes(const OptimizerParameter& parameter) const {
    const auto matches = [&](const std::string& pattern) { return matches_glob(pattern, parameter.name); };
    return parameter.decays && parameter.shape().size() >= 2 && std::ranges::none_of(config_.muon_except, matches);
  }

  // Moves the average and returns the matrix to orthogonalise.
  at::Tensor mixed(const StepInputs& inputs, size_t row) const {
    const at::Tensor& average = average_[row];
    const at::Tensor gradient = safe_gradient(inputs, matrices_[row].value.grad());
    assign_unless_skipped(inputs, average, average + (1 - config_.momentum) * (gradient - average));
    return config_.muon_nesterov ? gradient + config_.momentum * (average - gradient) : average;
  }

  // The direction for a whole matrix.
  at::Tensor direction(size_t row, const at::Tensor& whole) const {
    const std::vector<int64_t> shape = matrices_[row].shape();
    return orthogonalised(whole.reshape({shape[0], -1}), config_.muon_steps).reshape(shape);
  }

  void update(const StepInputs& inputs, size_t row, const at::Tensor& of_part) const {
    const at::Tensor& value = matrices_[row].value;
    const std::vector<int64_t> shape = matrices_[row].shape();
    const double decay = matrices_[row].decays ? config_.weight_decay : 0.0;
    const double scale = scale_of(shape[0], c10::multiply_integers(shape) / shape[0]);
    assign_unless_skipped(inputs, value, value * (1 - inputs.rate * decay) - of_part * (inputs.rate * scale));
  }

  // Each matrix is whole on one of the ranks that hold parts of it.
  void update_parts(const StepInputs& inputs, const std::vector<size_t>& parts) const {
    std::vector<size_t> numbers;
    for (const size_t row : parts) numbers.push_back(numbers_[row]);
    inputs.on_wholes(numbers, {.part = [&](size_t i) { return mixed(inputs, parts[i]); },
                               .body = [&](size_t i, const at::Tensor& whole) { return direction(parts[i], whole); },
                               .take = [&](size_t i, const at::Tensor& of_part) { update(inputs, parts[i], of_part); }});
  }

  double scale_of(int64_t rows, int64_t columns) const {
    const auto a = static_cast<double>(rows), b = static_cast<double>(columns);
    return config_.muon_scale == config::MuonScale::Original ? std::sqrt(std::max(1.0, a / b)) : 0.2 * std::sqrt(std::max(a, b));
  }

  config::OptimizerConfig config_;
  std::vector<OptimizerParameter> matrices_;
  std::vector<size_t> numbers_;      // of matrices_, among all parameters
  std::vector<at::Tensor> average_;  // by row of matrices_
  OptimizerPtr rest_;
};

}  // namespace

OptimizerPtr muon(const config::RunConfig& config, std::vector<OptimizerParameter> parameters) {
  return std::make_unique<Muon>(config, std::move(parameters));
}

}  // namespace welkin::train
