// SPDX-License-Identifier: Apache-2.0
// One step with everything captured, then the optimizer's trajectory.
#include "train/reference/model_runner.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>

#include "core/text.h"
#include "ops/autocast.h"
#include "train/loss.h"
#include "train/metrics.h"
#include "train/optimizer.h"
#include "train/precision.h"
#include "train/reference/activations.h"
#include "train/reference/reference_loss.h"

namespace welkin::train::reference {
namespace {

void append_rows(std::vector<ComparisonRow>& rows, std::vector<ComparisonRow> more) {
  rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// "act.block0.idx" -> "act.block0"
std::string tensor_of(const std::string& stored_name) {
  for (const char* suffix : {".norm", ".sum", ".idx", ".val", ".channel_norm"}) {
    // "act.norm" is the final norm's activation, not the norm of "act".
    if (stored_name.ends_with(suffix) && stored_name != "act.norm" && !stored_name.ends_with("act.norm")) {
      return stored_name.substr(0, stored_name.size() - std::string(suffix).size());
    }
  }
  return stored_name;
}

std::vector<std::string> tensors_of(const StoredTensors& stored) {
  std::vector<std::string> tensors;
  for (const std::string& name : stored.names()) {
    std::string tensor = tensor_of(name);
    if (std::find(tensors.begin(), tensors.end(), tensor) == tensors.end()) tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// A case under way: the model and its last results.
class ModelRun {
 public:
  explicit ModelRun(const ModelCase& c)
      : case_(c),
        model_(build_case_model(c)),
        capture_(*model_),
        relative_(c.config.loss.loss == "relative_l2"),
        loss_(relative_ ? relative_l2() : l1_rho(c.config.loss.lambda_rho)),
        input_(case_input(c, "input").requires_grad_()),
        target_(case_input(c, "target")) {}

  std::vector<ComparisonRow> run();

 private:
  at::Tensor forward();   // () loss; output and activations are kept
  double loss_of_step();  // forward and backward; gradients are left in the parameters
  double last_loss();
  void compare_outputs();
  void compare_output(const std::string& name, const StoredTensors& stored);
  void compare_fp32_deviation();
  void compare_own_loss();
  void compare_gradients();
  void compare_gradient(const std::string& name, const at::Tensor& gradient, const StoredTensors& stored);
  void compare_trajectory();
  void compare_final_weights(const StoredTensors& stored);
  double loss_bound(const std::string& name) const;
  at::Tensor metric(const std::string& name) const;
  double extra_loss(const std::string& name) const;

  const ModelCase& case_;
  model::ModelPtr model_;
  ActivationCapture capture_;
  bool relative_;  // the loss is the relative L2, which the reference sums in another way
  LossPtr loss_;
  at::Tensor input_, target_;
  at::Tensor output_;
  double loss_value_ = 0;
  std::vector<ComparisonRow> rows_;
};

at::Tensor ModelRun::forward() {
  const ops::AutocastGuard autocast(at::kCPU, autocast_dtype(case_.config.precision.amp_mode));
  output_ = model_->forward(input_, {});
  return relative_ ? norm_ratio_loss(output_, target_) : loss_->per_sample(output_, target_).mean();
}

double ModelRun::loss_of_step() {
  model_->zero_grad();
  input_.mutable_grad() = at::Tensor();
  const at::Tensor loss = forward();
  loss.mul(case_.loss_scale).backward();
  return loss.item<double>();
}

// The loss after the last step needs no gradient.
double ModelRun::last_loss() {
  const at::NoGradGuard no_grad;
  return forward().item<double>();
}

double ModelRun::loss_bound(const std::string& name) const {
  const auto found = case_.tolerance.numbers.find(name);
  return found == case_.tolerance.numbers.end() ? case_.tolerance.loss : found->second;
}

// The parts of the U-Net's loss.
double ModelRun::extra_loss(const std::string& name) const {
  const at::Tensor output = output_.detach();
  const double l1 = l1_rho(0.0)->per_sample(output, target_).mean().item<double>();
  if (name == "loss.l1_only") return l1;
  return l1_rho(1.0)->per_sample(output, target_).mean().item<double>() - l1;  // loss.rho_l1
}

at::Tensor ModelRun::metric(const std::string& name) const {
  const at::Tensor output = output_.detach();
  const WeightedSums sums = weighted_sums(output, target_, latitude_weights(output.size(2)));
  return (name == "metric.weighted_rmse" ? weighted_rmse(sums, output.size(2) * output.size(3)) : weighted_acc(sums)).mean(0);
}

void ModelRun::compare_output(const std::string& name, const StoredTensors& stored) {
  const std::string plain = name.substr(case_.output_prefix.size());
  const Bounds& forward = case_.tolerance.forward;
  if (plain == "output") {
    append_rows(rows_, compare_stored(name, output_, stored, forward));
  } else if (plain == "loss" || plain == "loss_f64") {
    rows_.push_back(compare_number(name, loss_value_, stored.number(name), case_.tolerance.loss));
  } else if (plain.starts_with("loss.")) {
    rows_.push_back(compare_number(name, extra_loss(plain), stored.number(name), loss_bound(plain)));
  } else if (plain.starts_with("metric.")) {
    append_rows(rows_, compare_stored(name, metric(plain), stored, forward));
  } else if (const at::Tensor activation = capture_.find(plain); activation.defined()) {
    append_rows(rows_, compare_stored(name, activation, stored, forward));
  } else {
    ComparisonRow row;
    row.tensor = name;
    row.reason = "the model has no such place";
    rows_.push_back(row);
  }
}

void ModelRun::compare_outputs() {
  const StoredTensors stored(case_.folder / "outputs.safetensors");
  for (const std::string& name : tensors_of(stored)) {
    if (name.starts_with(case_.output_prefix)) compare_output(name, stored);
  }
}

// Welkin's loss and its gradient on the same output, against the same in float64.
void ModelRun::compare_own_loss() {
  const auto loss_and_gradient = [&](at::ScalarType dtype) {
    const at::Tensor output = output_.detach().to(dtype).requires_grad_();
    const at::Tensor loss = loss_->per_sample(output, target_.to(dtype)).mean();
    loss.backward();
    return std::pair{loss.item<double>(), output.grad()};
  };
  const auto own = loss_and_gradient(at::kFloat);
  const auto wide = loss_and_gradient(at::kDouble);
  rows_.push_back(compare_number("own loss against float64", own.first, wide.first, case_.tolerance.loss));
  rows_.push_back(compare_values("own loss gradient against float64", own.second, wide.second, {.rel_l2 = case_.tolerance.loss}));
}

// Too small a distance from float32 means that the low precision was not used.
void ModelRun::compare_fp32_deviation() {
  if (!case_.fp32_deviation) return;
  const StoredTensors full(case_.weights_folder / "outputs.safetensors");
  const double deviation = compare_values("output", output_, full.get("output"), {}).rel_l2;
  ComparisonRow row;
  row.tensor = "output against float32";
  row.rel_l2 = deviation;
  row.tolerance_rel_l2 = 2 * *case_.fp32_deviation;
  row.verdict = deviation <= row.tolerance_rel_l2 && deviation >= *case_.fp32_deviation / 2 ? Verdict::Pass : Verdict::Fail;
  row.reason = cat("within a factor of 2 of ", *case_.fp32_deviation);
  rows_.push_back(row);
}

// A gradient that is zero in exact arithmetic, against an absolute bound.
ComparisonRow compare_noise(const std::string& name, const at::Tensor& gradient, const std::pair<int64_t, int64_t>& range,
                            double bound) {
  ComparisonRow row;
  row.tensor = name + " (zero in exact arithmetic)";
  row.max_abs = gradient.flatten().slice(0, range.first, range.second).abs().max().item<double>();
  row.reason = cat("absolute bound ", bound);
  row.verdict = row.max_abs <= bound ? Verdict::Pass : Verdict::Fail;
  return row;
}

void ModelRun::compare_gradient(const std::string& name, const at::Tensor& gradient, const StoredTensors& stored) {
  const NoiseRange noise = case_.noise_of(name, gradient.numel());
  if (noise && !case_.fp32_deviation) rows_.push_back(compare_noise(name, gradient, *noise, case_.tolerance.noise_gradient));
  if (!case_.fp32_deviation) {
    append_rows(rows_, compare_stored(name, gradient, stored, case_.tolerance.gradients, noise));
    return;
  }
  if (noise) {
    rows_.push_back(skipped(name, "rounding noise in the reference"));
    return;
  }
  const auto& bounds = case_.tolerance.gradient_norms;
  const auto bound = bounds.contains(name) ? bounds.find(name) : bounds.find("*");
  append_rows(rows_, compare_stored(name, gradient, stored, {.rel_l2 = bound->second}));
}

void ModelRun::compare_gradients() {
  const StoredTensors stored(case_.folder / (case_.gradient_file + ".safetensors"));
  for (const auto& parameter : model_->named_parameters()) {
    compare_gradient(parameter.key(), parameter->grad().div(case_.loss_scale), stored);
  }
  compare_gradient("input", input_.grad().div(case_.loss_scale), stored);
}

void ModelRun::compare_final_weights(const StoredTensors& stored) {
  const Bounds bounds{.rel_l2 = case_.tolerance.trajectory_weights};
  for (const auto& parameter : model_->named_parameters()) {
    const NoiseRange noise = case_.noise_of(parameter.key(), parameter->numel());
    append_rows(rows_, compare_stored(case_.output_prefix + "final." + parameter.key(), *parameter, stored, bounds, noise));
  }
}

void ModelRun::compare_trajectory() {
  const auto stored = open_stored(case_.folder, "trajectory");
  if (!stored) return;
  const std::string prefix = case_.output_prefix;
  const at::Tensor losses = stored->get(prefix + "loss").to(at::kDouble);
  std::vector<OptimizerParameter> parameters;
  for (const auto& parameter : model_->named_parameters()) parameters.push_back({parameter.key(), *parameter});
  const OptimizerPtr optimizer = adam(case_.config, std::move(parameters));
  const at::Tensor found_inf = at::zeros({}, at::kFloat);
  capture_.enabled = false;
  const int64_t num_steps = losses.numel() - 1;
  for (int64_t step = 0; step <= num_steps; ++step) {
    const double loss = step == 0 ? loss_value_ : (step == num_steps ? last_loss() : loss_of_step());
    const std::string name = cat(prefix, "trajectory.loss[", step, "]");
    rows_.push_back(compare_number(name, loss, losses[step].item<double>(), case_.tolerance.trajectory_loss));
    if (step == num_steps) break;
    const double rate = stored->contains("lr") ? stored->get("lr")[step].item<double>() : case_.config.optimizer.lr;
    optimizer->step({at::full({}, rate, at::kDouble), found_inf});
  }
  compare_final_weights(*stored);
}

std::vector<ComparisonRow> ModelRun::run() {
  loss_value_ = loss_of_step();
  compare_outputs();
  compare_fp32_deviation();
  compare_own_loss();
  compare_gradients();
  capture_.clear();
  compare_trajectory();
  return std::move(rows_);
}

}  // namespace

int64_t ModelReport::count(Verdict verdict) const {
  return std::count_if(rows.begin(), rows.end(), [&](const ComparisonRow& row) { return row.verdict == verdict; });
}

ModelReport run_model_case(const ModelCase& c) {
  const auto start = std::chrono::steady_clock::now();
  ModelReport report{c.name, ModelRun(c).run(), 0};
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace welkin::train::reference
