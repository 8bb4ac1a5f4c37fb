// SPDX-License-Identifier: Apache-2.0
// A case in one process: Welkin's model, loss and optimizer.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "ops/base/autocast.h"
#include "train/learn/loss.h"
#include "train/learn/precision.h"
#include "train/optim/optimizer.h"
#include "verify/cases/reference_loss.h"
#include "verify/engine/model_engine.h"

namespace welkin::verify {
namespace {

train::OptimizerPtr make_case_optimizer(const config::RunConfig& config, std::vector<train::OptimizerParameter> parameters) {
  if (config.optimizer.optimizer == "SGD") return train::sgd(config, std::move(parameters));
  if (config.optimizer.optimizer == "AdamW") return train::adamw(config, std::move(parameters));
  return train::adam(config, std::move(parameters));
}

class SingleProcessEngine : public ModelEngine {
 public:
  SingleProcessEngine(const ModelCase& c, const VerifyOptions& options)
      : case_(c),
        device_(options.device),
        amp_mode_(options.amp_mode.value_or(c.config.precision.amp_mode)),
        model_(build_case_model(c)),
        capture_(*model_),
        loss_(c.config.loss.loss == "relative_l2" ? train::relative_l2() : train::l1_rho(c.config.loss.lambda_rho)),
        input_(c.inputs.get("input").to(device_).requires_grad_()),
        target_(c.inputs.get("target").to(device_)) {
    model_->to(device_);
    std::vector<train::OptimizerParameter> parameters;
    for (const auto& parameter : model_->named_parameters()) parameters.push_back({parameter.key(), *parameter});
    optimizer_ = make_case_optimizer(c.config, std::move(parameters));
  }

  double step() override {
    model_->zero_grad();
    input_.mutable_grad() = at::Tensor();
    capture_.clear();
    const at::Tensor loss = forward(amp_mode_);
    capture_.enabled = false;
    loss.mul(case_.loss_scale).backward();
    return loss.item<double>();
  }

  double loss_now() override {
    const at::NoGradGuard no_grad;
    return forward(amp_mode_).item<double>();
  }

  void update(double rate) override {
    const bool cpu = device_.is_cpu();
    const auto on_device = at::TensorOptions().device(device_);
    optimizer_->step(
        {at::full({}, rate, on_device.dtype(cpu ? at::kDouble : at::kFloat)), at::zeros({}, on_device.dtype(at::kFloat))});
  }

  at::Tensor output() const override { return output_.detach(); }
  Activation activation(const std::string& name) const override { return capture_.find(name); }

  std::vector<NamedTensor> gradients() const override {
    std::vector<NamedTensor> all;
    for (const auto& parameter : model_->named_parameters()) {
      const at::Tensor& gradient = parameter->grad();
      all.push_back({parameter.key(), gradient.defined() ? gradient.div(case_.loss_scale) : at::zeros(parameter->sizes()),
                     capture_.order_of(parameter.key())});
    }
    return all;
  }

  at::Tensor input_gradient() const override { return input_.grad().div(case_.loss_scale); }

  std::vector<NamedTensor> weights() const override {
    std::vector<NamedTensor> all;
    for (const auto& parameter : model_->named_parameters()) all.push_back({parameter.key(), *parameter});
    return all;
  }

  at::Tensor float32_output() override {
    const at::NoGradGuard no_grad;
    const at::Tensor kept = output_;
    forward(config::AmpMode::None);
    at::Tensor wide = output_;
    output_ = kept;
    return wide;
  }

 private:
  at::Tensor forward(config::AmpMode mode) {
    const ops::AutocastGuard autocast(device_.type(), train::autocast_dtype(mode));
    output_ = model_->forward(input_, {});
    // In the reference's arithmetic, that of a CPU in its order of sums, whose norms of a field of 360 x 720 are off by 1e-4 in
    // float32.
    if (case_.config.loss.loss == "relative_l2") return norm_ratio_loss(output_.cpu(), target_.cpu());
    return loss_->per_sample(output_, target_).mean();
  }

  const ModelCase& case_;
  c10::Device device_;
  config::AmpMode amp_mode_;
  model::ModelPtr model_;
  ActivationCapture capture_;
  train::LossPtr loss_;
  at::Tensor input_, target_;
  train::OptimizerPtr optimizer_;
  at::Tensor output_;
};

}  // namespace

std::unique_ptr<ModelEngine> single_process_engine(const ModelCase& c, const VerifyOptions& options) {
  return std::make_unique<SingleProcessEngine>(c, options);
}

}  // namespace welkin::verify
