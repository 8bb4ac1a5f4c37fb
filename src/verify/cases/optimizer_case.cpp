// SPDX-License-Identifier: Apache-2.0
// Cases of any optimizer on several parameters: given gradients, rates, scales and skipped steps. In float32 (the path of
// training) and float64 (aten's operators), against weights that another implementation computed in float64.
#include <ATen/ops/full.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/rounding.h"
#include "core/text.h"
#include "train/learn/registries.h"
#include "verify/cases/table_cases.h"

namespace welkin::verify {
namespace optimizer_case {

using Json = nlohmann::json;

struct Entry {
  std::string name;
  bool decays = true;
};

std::vector<Entry> entries_of(const CaseFolder& folder) {
  std::vector<Entry> entries;
  for (const Json& entry : folder.meta().at("parameters")) {
    entries.push_back({entry.at("name").get<std::string>(), entry.value("decays", true)});
  }
  return entries;
}

template <typename Choice>
void take_choice(const Json& keys, const char* key, Choice& choice) {
  if (!keys.contains(key)) return;
  const auto name = keys.at(key).get<std::string>();
  const auto named = config::choice_named<Choice>(name);
  if (!named) throw DataError("reference", cat("an unknown choice: ", key, "=", name), "Correct the case's meta.json");
  choice = *named;
}

config::RunConfig config_of(const Json& keys) {
  config::RunConfig config;
  config::OptimizerConfig& optimizer = config.optimizer;
  optimizer.optimizer = keys.at("name").get<std::string>();
  optimizer.betas = keys.value("betas", std::vector<double>{0.9, 0.999});
  if (optimizer.betas.size() != 2) {
    throw DataError("reference", cat("not two decay rates: betas=", optimizer.betas.size()), "Correct the case's meta.json");
  }
  optimizer.eps = keys.value("eps", optimizer.eps);
  optimizer.weight_decay = keys.value("weight_decay", optimizer.weight_decay);
  optimizer.momentum = keys.value("momentum", optimizer.momentum);
  take_choice(keys, "optimizer_state", optimizer.optimizer_state);
  optimizer.trust_coefficient = keys.value("trust_coefficient", optimizer.trust_coefficient);
  optimizer.lamb_min_ratio = keys.value("lamb_min_ratio", optimizer.lamb_min_ratio);
  optimizer.lamb_max_ratio = keys.value("lamb_max_ratio", optimizer.lamb_max_ratio);
  optimizer.adafactor_factored = keys.value("adafactor_factored", optimizer.adafactor_factored);
  optimizer.adafactor_decay = keys.value("adafactor_decay", optimizer.adafactor_decay);
  optimizer.adafactor_clip = keys.value("adafactor_clip", optimizer.adafactor_clip);
  optimizer.adafactor_min_scale = keys.value("adafactor_min_scale", optimizer.adafactor_min_scale);
  take_choice(keys, "muon_scale", optimizer.muon_scale);
  optimizer.muon_steps = keys.value("muon_steps", optimizer.muon_steps);
  optimizer.muon_nesterov = keys.value("muon_nesterov", optimizer.muon_nesterov);
  optimizer.muon_except = keys.value("muon_except", optimizer.muon_except);
  return config;
}

// The weights after all steps, by name.
std::map<std::string, at::Tensor> trained(const CaseFolder& folder, const Json& keys, at::ScalarType dtype, c10::Device device) {
  const StoredTensors& data = folder.need_tensors("data");
  const auto rates = keys.at("rates").get<std::vector<double>>();
  const auto skips = keys.value("skipped", std::vector<int64_t>{});
  const auto scale = keys.value("gradient_scale", 1.0);
  std::map<std::string, at::Tensor> weights, gradients;
  std::vector<train::OptimizerParameter> parameters;
  for (const Entry& entry : entries_of(folder)) {
    weights[entry.name] = data.get("start." + entry.name).to(device, dtype).clone();
    gradients[entry.name] = data.get("grads." + entry.name).to(device, dtype);
    parameters.push_back({.name = entry.name, .value = weights[entry.name], .decays = entry.decays});
  }
  train::Registries registries;
  train::add_builtins(registries);
  const config::RunConfig config = config_of(keys);
  const train::OptimizerPtr optimizer = registries.optimizers.at(config.optimizer.optimizer).make(config, parameters);
  const auto number = [&](double value, at::ScalarType type) {
    return at::full({}, value, at::TensorOptions(type).device(device));
  };
  for (size_t step = 0; step < rates.size(); ++step) {
    const bool is_skipped = std::ranges::find(skips, static_cast<int64_t>(step)) != skips.end();
    for (const auto& [name, weight] : weights) weight.mutable_grad() = gradients[name][static_cast<int64_t>(step)].clone();
    optimizer->step({.rate = number(rates[step], device.is_cpu() ? at::kDouble : at::kFloat),
                     .found_inf = number(is_skipped ? 1 : 0, at::kFloat),
                     .gradient_scale = number(scale, at::kFloat)});
  }
  return weights;
}

}  // namespace optimizer_case

// Relative L2 of each parameter, within the bound of sums unless the case states one.
Rows verify_optimizer(const CaseFolder& folder, const VerifyOptions& options) {
  Rows rows;
  const StoredTensors& data = folder.need_tensors("data");
  const auto& configs = folder.meta().at("configs");
  for (size_t k = 0; k < configs.size(); ++k) {
    const auto length = configs[k].at("reduction_length").get<int64_t>();
    for (const auto& [dtype, format] : {std::pair(at::kFloat, kFp32), std::pair(at::kDouble, kFp64)}) {
      for (const auto& [name, got] : optimizer_case::trained(folder, configs[k], dtype, options.device)) {
        const at::Tensor wanted = data.get(cat("opt", k, ".", name));
        const std::string row =
            cat(configs[k].at("name").get<std::string>(), k, ".", name, " ", dtype == at::kFloat ? "f32" : "f64");
        rows.push_back(compare_values(row, got.cpu(), wanted, {.rel_l2 = 2 * sum_bound(format, length)}));
      }
    }
  }
  return rows;
}

}  // namespace welkin::verify
