// SPDX-License-Identifier: Apache-2.0
// Muon for weights, AdamW for the rest.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/glob.h"
#include "core/text.h"
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
    for (OptimizerParameter& parameter : parameters) (takes(parameter) ? matrices_ : rest).push_back(std::move(parameter));
    for (const OptimizerParameter& matrix : matrices_) {
      if (matrix.is_part) {
        throw ConfigError("optimizer", cat("Muon needs whole matrices: optimizer=Muon, parameter=", matrix.name),
                          "Take AdamW, LAMB or Lion, or train without splitting the parameters");
      }
      average_.push_back(state_like(matrix.value));
    }
    rest_ = adamw(config, std::move(rest));
  }

  void step(const StepInputs& inputs) override {
    const at::NoGradGuard no_grad;
    rest_->step(inputs);
    const bool on_cpu = inputs.found_inf.is_cpu();
    if (on_cpu && inputs.found_inf.item<float>() != 0) return;  // spares the products
    for (size_t row = 0; row < matrices_.size(); ++row) {
      const at::Tensor& gradient = matrices_[row].value.grad();
      if (gradient.defined()) update(inputs, matrices_[row], gradient, average_[row]);
    }
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
    return parameter.decays && parameter.value.dim() >= 2 && std::ranges::none_of(config_.muon_except, matches);
  }

  void update(const StepInputs& inputs, const OptimizerParameter& parameter, const at::Tensor& raw, const at::Tensor& average) {
    const at::Tensor& value = parameter.value;
    const at::Tensor gradient = safe_gradient(inputs, raw);
    assign_unless_skipped(inputs, average, average + (1 - config_.momentum) * (gradient - average));
    const at::Tensor mixed = config_.muon_nesterov ? gradient + config_.momentum * (average - gradient) : average;
    const at::Tensor matrix = mixed.reshape({value.size(0), -1});
    const at::Tensor direction = orthogonalised(matrix, config_.muon_steps).reshape(value.sizes());
    const double decay = parameter.decays ? config_.weight_decay : 0.0;
    const double scale = scale_of(matrix.size(0), matrix.size(1));
    assign_unless_skipped(inputs, value, value * (1 - inputs.rate * decay) - direction * (inputs.rate * scale));
  }

  double scale_of(int64_t rows, int64_t columns) const {
    const auto a = static_cast<double>(rows), b = static_cast<double>(columns);
    return config_.muon_scale == config::MuonScale::Original ? std::sqrt(std::max(1.0, a / b)) : 0.2 * std::sqrt(std::max(a, b));
  }

  config::OptimizerConfig config_;
  std::vector<OptimizerParameter> matrices_;
  std::vector<at::Tensor> average_;  // by row of matrices_
  OptimizerPtr rest_;
};

}  // namespace

OptimizerPtr muon(const config::RunConfig& config, std::vector<OptimizerParameter> parameters) {
  return std::make_unique<Muon>(config, std::move(parameters));
}

}  // namespace welkin::train
