// SPDX-License-Identifier: Apache-2.0
// Cases of an optimizer alone, in float32 and float64, and of the dynamic loss scale.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "train/learn/gradients.h"
#include "train/learn/precision.h"
#include "train/optim/optimizer.h"
#include "verify/cases/table_cases.h"

namespace welkin::verify {
namespace adam_case {

using Json = nlohmann::json;

struct Run {
  const StoredTensors& data;
  const Json& meta;
  const Json& config;
  std::string prefix;  // "adam0."
  std::string suffix;  // "_f32"
  c10::Device device;
};

struct Outcome {
  at::Tensor parameters;  // (steps, n), on the CPU
  std::vector<train::NamedState> states;
};

at::Tensor rates(const Run& run, int64_t steps) {
  if (run.data.contains(run.prefix + "lr")) return run.data.get(run.prefix + "lr").to(at::kDouble);
  return at::full({steps}, run.config.at("lr").get<double>(), at::kDouble);
}

Outcome optimize(const Run& run) {
  config::RunConfig config;
  config.optimizer.betas = run.config.at("betas").get<std::vector<double>>();
  config.optimizer.eps = run.config.value("eps", 1e-8);
  config.optimizer.weight_decay = run.config.value("weight_decay", 0.0);
  const auto name = run.config.value("name", std::string("Adam"));
  if (config.optimizer.betas.size() != 2 || (name != "Adam" && name != "AdamW")) {
    throw DataError("reference", cat("not a configuration of Adam: name=", name, ", betas=", config.optimizer.betas.size()),
                    "Correct the case's meta.json");
  }
  const auto dtype = run.suffix == "_f64" ? at::kDouble : at::kFloat;
  const at::Tensor parameter = run.data.get("param0").to(run.device, dtype).clone();
  const at::Tensor gradients = run.data.get("grads").to(run.device, dtype);
  const at::Tensor rate = rates(run, gradients.size(0));
  const auto on_device = at::TensorOptions().device(run.device);
  const at::Tensor found_inf = at::zeros({}, on_device.dtype(at::kFloat));
  const train::OptimizerPtr optimizer = (name == "AdamW" ? train::adamw : train::adam)(config, {{"p", parameter, true}});
  std::vector<at::Tensor> after;
  for (int64_t step = 0; step < gradients.size(0); ++step) {
    parameter.mutable_grad() = gradients[step].clone();
    optimizer->step({rate[step].to(on_device.dtype(run.device.is_cpu() ? at::kDouble : at::kFloat)), found_inf});
    after.push_back(parameter.cpu().clone());
  }
  return {at::stack(after), optimizer->states()};
}

// |a - b| <= bound elementwise; the row's errors are in units of the bound.
ComparisonRow compare_elements(const std::string& name, const at::Tensor& got, const at::Tensor& wanted,
                               const at::Tensor& bound) {
  if (got.sizes() != wanted.sizes()) return failed(name, cat("wrong shape: computed=", got.sizes(), ", stored=", wanted.sizes()));
  const at::Tensor error = got.to(at::kCPU, at::kDouble).sub(wanted.to(at::kDouble)).abs();
  ComparisonRow row = compare_values(name, got, wanted, {});
  row.max_over_max = error.div(bound + 1e-300).max().item<double>();
  row.tolerance_max_over_max = 1;
  row.verdict = row.max_over_max <= 1 ? Verdict::Pass : Verdict::Fail;
  row.reason = "max/max in units of the element's bound";
  return row;
}

void verify_parameters(const Run& run, const Outcome& outcome, Rows& rows) {
  const std::string name = run.prefix + "params" + run.suffix;
  const at::Tensor wanted = run.data.get(name).to(at::kDouble);
  const double peak = rates(run, wanted.size(0)).max().item<double>();
  const Json& tolerance = run.meta.at("tolerance");
  at::Tensor bound;
  if (run.suffix == "_f32") {
    const auto text = tolerance.at("f32").at("params").get<std::string>();
    const double units = number_after(text, "<= ", 16);
    const double steps = number_after(text, "(|b| + ", static_cast<double>(wanted.size(0)));
    bound = units * 0x1p-24 * (wanted.abs() + steps * peak);
  } else {
    bound = tolerance.at("f64").at("rel").get<double>() * (wanted.abs() + static_cast<double>(wanted.size(0)) * peak);
    // A GPU's update reads the rate as float32 from its memory.
    if (!run.device.is_cpu()) bound = bound + 0x1p-24 * static_cast<double>(wanted.size(0)) * peak;
  }
  rows.push_back(compare_elements(name, outcome.parameters, wanted, bound));
}

void verify_moments(const Run& run, const Outcome& outcome, Rows& rows) {
  const Json& tolerance = run.meta.at("tolerance");
  const double bound = run.suffix == "_f64" ? tolerance.at("f64").at("rel").get<double>()
                                            : number_after(tolerance.at("f32").at("moments").get<std::string>(), "rel ", 1e-6);
  for (const std::string moment : {"exp_avg", "exp_avg_sq"}) {
    const std::string name = run.prefix + moment + run.suffix;
    if (!run.data.contains(name)) continue;
    const at::Tensor wanted = run.data.get(name);
    for (const train::NamedState& state : outcome.states) {
      if (state.name == moment + ".p")
        rows.push_back(compare_elements(name, state.value, wanted, bound * wanted.to(at::kDouble).abs()));
    }
  }
}

// Without weight decay, an entry that never had a gradient keeps its bits.
void verify_untouched(const Run& run, const Outcome& outcome, Rows& rows) {
  if (run.config.value("weight_decay", 0.0) != 0) return;
  const at::Tensor untouched = run.data.get("grads").ne(0).any(0).logical_not();
  const at::Tensor before = run.data.get("param0").to(outcome.parameters.scalar_type());
  const at::Tensor moved = outcome.parameters.ne(before).logical_and(untouched);
  rows.push_back(compare_flag(run.prefix + "entries without gradient" + run.suffix, !moved.any().item<bool>(),
                              "bits changed without a gradient"));
}

void verify_loss_scale(const CaseFolder& folder, c10::Device device, Rows& rows) {
  if (!std::filesystem::exists(folder.path() / "grad_scaler.json")) return;
  const Json table = folder.json("grad_scaler.json");
  config::PrecisionConfig config;
  config.amp_mode = config::AmpMode::Fp16;
  config.loss_scale = table.at("init_scale").get<double>();
  config.loss_scale_window = table.at("growth_interval").get<int64_t>();
  config.loss_scale_factor = table.at("growth_factor").get<double>();
  rows.push_back(compare_number("loss scale: back-off is one over growth", 1 / config.loss_scale_factor,
                                table.at("backoff_factor").get<double>(), 0));
  train::LossScaler scaler(config, device);
  int64_t number = 0;
  for (const Json& step : table.at("steps")) {
    const double value = step.at("overflow").get<bool>() ? INFINITY : 1.0;
    const std::string name = cat("loss scale[", number++, "]");
    const double used = scaler.scale().item<double>();
    const auto on_device = at::TensorOptions().device(device);
    const at::Tensor found_inf = check_gradients({at::full({3}, value, on_device)}, at::zeros({}, on_device), scaler, 0).overflow;
    scaler.update(found_inf);
    const bool taken = found_inf.item<float>() == 0;
    const bool same = used == step.at("scale_used").get<double>() && taken == step.at("step_taken").get<bool>();
    rows.push_back(compare_number(name, scaler.scale().item<double>(), step.at("scale_after").get<double>(), 0));
    if (!same) rows.back() = failed(name, cat("scale used=", used, ", step taken=", taken, ", stated=", step.dump()));
  }
}

}  // namespace adam_case

Rows verify_adam(const CaseFolder& folder, const VerifyOptions& options) {
  Rows rows;
  const StoredTensors& data = folder.need_tensors("data");
  const auto& configs = folder.meta().at("configs");
  for (size_t k = 0; k < configs.size(); ++k) {
    for (const char* suffix : {"_f32", "_f64"}) {
      const adam_case::Run run{data, folder.meta(), configs[k], cat("adam", k, "."), suffix, options.device};
      if (!data.contains(run.prefix + "params" + suffix)) continue;
      const adam_case::Outcome outcome = adam_case::optimize(run);
      adam_case::verify_parameters(run, outcome, rows);
      adam_case::verify_moments(run, outcome, rows);
      adam_case::verify_untouched(run, outcome, rows);
    }
  }
  adam_case::verify_loss_scale(folder, options.device, rows);
  return rows;
}

}  // namespace welkin::verify
