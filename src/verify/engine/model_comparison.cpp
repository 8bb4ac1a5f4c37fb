// SPDX-License-Identifier: Apache-2.0
// One step with all values captured, then the optimizer's trajectory.
#include "verify/engine/model_comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/rounding.h"
#include "core/text.h"
#include "train/learn/loss.h"
#include "train/learn/metrics.h"
#include "verify/cases/reference_loss.h"

namespace welkin::verify {
namespace {

constexpr int64_t kMostSteps = 1000;
constexpr double kDensityRate = 14;  // of l1_rho (train/learn/loss.h)

// A case under way: its rows so far.
class ModelComparison {
 public:
  ModelComparison(const ModelCase& c, ModelEngine& engine, const VerifyOptions& options)
      : case_(c), engine_(engine), target_(c.inputs.get("target")), other_precision_(is_other_precision(c, options)) {
    if (other_precision_) low_ = LowPrecisionBounds::of(options.amp_mode == config::AmpMode::Bf16 ? kBf16 : kFp16);
  }

  std::vector<ComparisonRow> run();

 private:
  static bool is_other_precision(const ModelCase& c, const VerifyOptions& options) {
    return options.amp_mode && *options.amp_mode != c.config.precision.amp_mode && *options.amp_mode != config::AmpMode::None;
  }

  void compare_parameter_count();
  void compare_outputs();
  ComparisonRow compare_output(const std::string& name, const StoredTensors& stored) const;
  ComparisonRow compare_correlation(const std::string& name, const at::Tensor& value, const StoredTensors& stored) const;
  void compare_own_loss();
  void compare_float32_deviation();
  double sign_slack() const;
  void compare_gradients();
  void compare_gradient(const std::string& name, const at::Tensor& gradient, const StoredTensors& stored);
  void compare_trajectory();
  void compare_losses(const StoredTensors& stored, const std::vector<double>& losses);
  void compare_final_weights(const StoredTensors& stored);
  at::Tensor metric(const std::string& name) const;
  double extra_loss(const std::string& name) const;
  double loss_bound(const std::string& name) const;
  Bounds forward_bounds() const;

  void add(ComparisonRow row, const char* part) {
    row.part = part;
    rows_.push_back(std::move(row));
  }

  const ModelCase& case_;
  ModelEngine& engine_;
  at::Tensor target_;  // on the CPU
  bool other_precision_;
  LowPrecisionBounds low_;
  double loss_ = 0;
  double sign_slack_ = 0;
  std::vector<ComparisonRow> rows_;
};

void ModelComparison::compare_parameter_count() {
  if (!case_.num_parameters) return;
  int64_t total = 0;
  for (const NamedTensor& weight : engine_.weights()) total += weight.value.numel();
  add(compare_flag("number of parameters", total == *case_.num_parameters,
                   cat("model=", total, ", stated=", *case_.num_parameters)),
      "model");
}

double ModelComparison::loss_bound(const std::string& name) const {
  if (other_precision_) {
    // A relative error of a density d in [-1, 1] is up to this many times as large in exp(rate d).
    const double growth = name == "loss.rho_l1" || (name == "loss" && case_.config.loss.lambda_rho > 0) ? kDensityRate : 1;
    return growth * low_.loss + (case_.low_precision() ? case_.tolerance.loss : 0);  // the reference is rounded too
  }
  const auto found = case_.tolerance.numbers.find(name);
  return found == case_.tolerance.numbers.end() ? case_.tolerance.loss : found->second;
}

// If the reference has a low precision of its own, its error is added.
Bounds ModelComparison::forward_bounds() const {
  if (!other_precision_) return case_.tolerance.forward;
  return {.rel_l2 = low_.forward + (case_.low_precision() ? 2 * *case_.fp32_deviation : 0)};
}

// The parts of the U-Net's loss.
double ModelComparison::extra_loss(const std::string& name) const {
  const at::Tensor output = engine_.output().cpu();
  const double l1 = train::l1_rho(0.0)->per_sample(output, target_).mean().item<double>();
  if (name == "loss.l1_only") return l1;
  if (name == "loss.rho_l1") return train::l1_rho(1.0)->per_sample(output, target_).mean().item<double>() - l1;
  return NAN;
}

// By the tutorials' rule, with which the case was made; kind `losses` compares ours.
at::Tensor ModelComparison::metric(const std::string& name) const {
  const at::Tensor output = engine_.output().cpu();
  if (output.dim() != 4) return {};
  const train::WeightedSums sums = train::weighted_sums(output, target_, tutorial_latitude_weights(output.size(2)));
  if (name == "metric.weighted_rmse") return train::weighted_rmse(sums, output.size(2) * output.size(3)).mean(0);
  return name == "metric.weighted_acc" ? train::weighted_acc(sums).mean(0) : at::Tensor();
}

ComparisonRow ModelComparison::compare_output(const std::string& name, const StoredTensors& stored) const {
  const std::string plain = name.substr(case_.output_prefix.size());
  if (plain == "output") return compare_stored(name, engine_.output(), stored, forward_bounds());
  if (plain == "loss" || plain == "loss_f64") return compare_number(name, loss_, stored.number(name), loss_bound("loss"));
  if (plain.starts_with("loss.")) return compare_number(name, extra_loss(plain), stored.number(name), loss_bound(plain));
  const at::Tensor value = plain.starts_with("metric.") ? metric(plain) : engine_.activation(plain).value;
  if (value.defined() && other_precision_ && plain == "metric.weighted_acc") return compare_correlation(name, value, stored);
  if (value.defined()) return compare_stored(name, value, stored, forward_bounds());
  for (const std::string& part : stored.names()) {
    if (tensor_of(part) == name) stored.get(part);
  }
  return failed(name, "the model has no such place");
}

// Correlations are between -1 and 1. Near zero the output's error is small beside one, but not beside the correlation.
ComparisonRow ModelComparison::compare_correlation(const std::string& name, const at::Tensor& value,
                                                   const StoredTensors& stored) const {
  ComparisonRow row = compare_values(name, value, stored.get(name), {});
  row.verdict = row.max_abs <= forward_bounds().rel_l2 ? Verdict::Pass : Verdict::Fail;
  row.reason = cat("absolute bound ", forward_bounds().rel_l2);
  return row;
}

// Compares activations in the order of the forward pass, then the output, then values computed from it.
void ModelComparison::compare_outputs() {
  const StoredTensors& stored = case_.folder->need_tensors("outputs");
  std::set<std::string> names;
  for (const std::string& name : stored.names()) {
    if (name.starts_with(case_.output_prefix)) names.insert(tensor_of(name));
  }
  const size_t skip = case_.output_prefix.size();
  for (const char* needed : {"output", "loss"}) {
    if (!names.contains(case_.output_prefix + needed))
      add(failed(case_.output_prefix + needed, "the tensor is missing, file=outputs.safetensors"), "case");
  }
  const auto rank = [&](const std::string& name) {
    const std::string plain = name.substr(skip);
    const int64_t order = plain.starts_with("act.") ? engine_.activation(plain).order : 0;
    const int group = plain.starts_with("act.") ? 0 : plain == "output" ? 1 : plain.starts_with("loss") ? 2 : 3;
    return std::tuple(group, order, name);
  };
  std::vector<std::string> ordered(names.begin(), names.end());
  std::ranges::sort(ordered, {}, rank);
  for (const std::string& name : ordered) {
    const int group = std::get<0>(rank(name));
    add(compare_output(name, stored), group < 2 ? "forward" : group == 2 ? "loss" : "metric");
  }
}

// Too small a distance from float32 means that the low precision was not used.
void ModelComparison::compare_float32_deviation() {
  if (!case_.low_precision() && !other_precision_) return;
  const at::Tensor wide = engine_.float32_output();
  if (!wide.defined()) return;
  ComparisonRow row = compare_values("output against float32", engine_.output(), wide, {});
  const double stated = other_precision_ ? low_.deviation : *case_.fp32_deviation;
  const double most = other_precision_ ? low_.forward : 2 * stated;
  row.tolerance_rel_l2 = most;
  const bool large_enough = row.rel_l2 >= stated / 2;
  row.verdict = large_enough && row.rel_l2 <= most ? Verdict::Pass : Verdict::Fail;
  row.reason = cat("wanted between ", stated / 2, " and ", most);
  if (!large_enough) row.reason = cat("too close to float32, so the low precision was not used: ", row.reason);
  add(std::move(row), "forward");
}

// Compares Welkin's loss and its gradient on the same output with the same in float64.
void ModelComparison::compare_own_loss() {
  const train::LossPtr loss =
      case_.config.loss.loss == "relative_l2" ? train::relative_l2() : train::l1_rho(case_.config.loss.lambda_rho);
  const auto loss_and_gradient = [&](c10::Device device, at::ScalarType dtype) {
    const at::Tensor output = engine_.output().to(device, dtype).requires_grad_();
    const at::Tensor mean = loss->per_sample(output, target_.to(device, dtype)).mean();
    mean.backward();
    return std::pair{mean.item<double>(), output.grad().cpu()};
  };
  const auto own = loss_and_gradient(engine_.output().device(), at::kFloat);
  const auto wide = loss_and_gradient(at::kCPU, at::kDouble);
  const double bound = case_.tolerance.loss;
  add(compare_number("own loss against float64", own.first, wide.first, bound), "loss");
  add(compare_values("own loss gradient against float64", own.second, wide.second, {.rel_l2 = bound}), "loss");
}

// Compares a gradient that is zero in exact arithmetic, against an absolute bound.
ComparisonRow compare_noise(const std::string& name, const at::Tensor& gradient, const std::pair<int64_t, int64_t>& range,
                            double bound) {
  ComparisonRow row;
  row.tensor = name + " (zero in exact arithmetic)";
  row.max_abs = gradient.flatten().slice(0, range.first, range.second).abs().max().item<double>();
  row.reason = cat("absolute bound ", bound);
  row.verdict = row.max_abs <= bound ? Verdict::Pass : Verdict::Fail;
  return row;
}

void ModelComparison::compare_gradient(const std::string& name, const at::Tensor& gradient, const StoredTensors& stored) {
  const NoiseRange noise = case_.noise_of(name, gradient.numel());
  if (!case_.low_precision()) {
    if (noise && noise->first >= 0 && noise->first < noise->second && noise->second <= gradient.numel()) {
      add(compare_noise(name, gradient, *noise, case_.tolerance.noise_gradient), "gradient");
    }
    Bounds bounds = case_.tolerance.gradients;
    bounds.rel_l2 += sign_slack_;
    add(compare_stored(name, gradient, stored, bounds, noise), "gradient");
    return;
  }
  const auto& bounds = case_.tolerance.gradient_norms;
  const auto bound = bounds.contains(name) ? bounds.find(name) : bounds.find("*");
  if (bound == bounds.end())
    throw DataError("reference", cat("no bound is stated for a gradient: tensor=", name),
                    "Add tolerance.grad_norms to meta.json");
  add(compare_stored(name, gradient, stored, {.rel_l2 = bound->second}, noise ? NoiseRange{{0, gradient.numel()}} : noise),
      "gradient");
}

// The gradient of an absolute error is a sign. A device other than the reference's may have the other sign if output and target
// are as near as the outputs of both devices. k such points of N change the gradient of the output by up to 2 sqrt(k / N) of
// it.
double ModelComparison::sign_slack() const {
  const at::Tensor output = engine_.output();
  const auto compared = std::ranges::find(rows_, case_.output_prefix + "output", &ComparisonRow::tensor);
  if (output.is_cpu() || case_.config.loss.loss == "relative_l2" || compared == rows_.end()) return 0;
  const at::Tensor distance = output.to(at::kCPU, at::kDouble).sub(target_.to(at::kDouble)).abs();
  const auto points = distance.le(compared->max_abs).sum().item<int64_t>();
  return 2 * std::sqrt(static_cast<double>(points) / static_cast<double>(distance.numel()));
}

// Compares from the output back, in the order of the backward pass.
void ModelComparison::compare_gradients() {
  const StoredTensors* stored = case_.folder->tensors(case_.gradient_file);
  if (stored == nullptr) {
    add(skipped(case_.gradient_file, "the case holds no gradients"), "gradient");
    return;
  }
  sign_slack_ = sign_slack();
  std::vector<NamedTensor> gradients = engine_.gradients();
  std::ranges::stable_sort(gradients, std::greater<>{}, &NamedTensor::order);
  for (const NamedTensor& gradient : gradients) compare_gradient(gradient.name, gradient.value.cpu(), *stored);
  const auto names = stored->names();
  const bool has_input = std::ranges::any_of(names, [](const std::string& name) { return tensor_of(name) == "input"; });
  if (has_input) compare_gradient("input", engine_.input_gradient().cpu(), *stored);
}

void ModelComparison::compare_losses(const StoredTensors& stored, const std::vector<double>& losses) {
  for (const std::string& name : {case_.output_prefix + "loss", case_.output_prefix + "loss_f64"}) {
    if (!stored.contains(name)) continue;
    const at::Tensor wanted = stored.get(name).to(at::kDouble).flatten();
    for (size_t step = 0; step < losses.size() && static_cast<int64_t>(step) < wanted.numel(); ++step) {
      add(compare_number(cat("trajectory.", name, "[", step, "]"), losses[step],
                         wanted[static_cast<int64_t>(step)].item<double>(), case_.tolerance.trajectory_loss),
          "trajectory");
    }
    if (wanted.numel() != static_cast<int64_t>(losses.size())) {
      add(failed(name, cat("wrong shape: losses=", wanted.numel(), ", wanted=", losses.size())), "trajectory");
    }
  }
}

void ModelComparison::compare_final_weights(const StoredTensors& stored) {
  const std::string prefix = case_.output_prefix + "final.";
  const auto& names = stored.names();
  if (std::ranges::none_of(names, [&](const std::string& name) { return name.starts_with(prefix); })) {
    add(skipped(prefix + "*", "the case holds no final weights"), "trajectory");
    return;
  }
  for (const NamedTensor& weight : engine_.weights()) {
    const NoiseRange noise = case_.noise_of(weight.name, weight.value.numel());
    add(compare_stored(prefix + weight.name, weight.value, stored, {.rel_l2 = case_.tolerance.trajectory_weights}, noise),
        "trajectory");
  }
}

void ModelComparison::compare_trajectory() {
  const StoredTensors* stored = case_.folder->tensors("trajectory");
  if (stored == nullptr) {
    add(skipped("trajectory", "the case holds no optimizer steps"), "trajectory");
    return;
  }
  if (case_.tolerance.trajectory_loss <= 0) {
    for (const std::string& name : stored->names()) stored->get(name);
    add(skipped("trajectory", "the case states no bounds for optimizer steps"), "trajectory");
    return;
  }
  const int64_t num_steps = stored->get(case_.output_prefix + "loss").numel() - 1;
  const at::Tensor rates = stored->contains("lr") ? stored->get("lr").to(at::kDouble).flatten() : at::Tensor();
  if (num_steps < 0 || num_steps > kMostSteps || (rates.defined() && rates.numel() < num_steps)) {
    add(failed("trajectory",
               cat("wrong shape: steps=", num_steps, ", most=", kMostSteps, ", rates=", rates.defined() ? rates.numel() : -1)),
        "trajectory");
    return;
  }
  std::vector<double> losses{loss_};
  for (int64_t step = 0; step < num_steps; ++step) {
    if (step > 0) losses.push_back(engine_.step());
    engine_.update(rates.defined() ? rates[step].item<double>() : case_.config.optimizer.lr);
  }
  if (num_steps > 0) losses.push_back(engine_.loss_now());
  compare_losses(*stored, losses);
  compare_final_weights(*stored);
}

std::vector<ComparisonRow> ModelComparison::run() {
  compare_parameter_count();
  loss_ = engine_.step();
  compare_outputs();
  compare_float32_deviation();
  compare_own_loss();
  if (other_precision_) {
    add(skipped("gradients, trajectory", "the case states no bounds for this precision"), "gradient");
    return std::move(rows_);
  }
  compare_gradients();
  compare_trajectory();
  return std::move(rows_);
}

}  // namespace

std::vector<ComparisonRow> compare_model_case(const ModelCase& c, ModelEngine& engine, const VerifyOptions& options) {
  return ModelComparison(c, engine, options).run();
}

}  // namespace welkin::verify
