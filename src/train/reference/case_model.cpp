// SPDX-License-Identifier: Apache-2.0
// Building the model of a case and filling it with the case's weights.
#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "core/text.h"
#include "train/reference/model_runner.h"

namespace welkin::train::reference {
namespace {

[[noreturn]] void refuse(const ModelCase& c, const std::string& what) {
  throw DataError("reference", cat("the case does not fit the model: case=", c.name, ", ", what),
                  "Check variant and constructor in meta.json");
}

// Weights by formula are made one at a time: the whole of them need not fit twice.
class WeightSource {
 public:
  explicit WeightSource(const ModelCase& c) : case_(c) {
    if (c.formula.empty()) stored_.emplace(c.weights_folder / "weights.safetensors");
  }
  bool contains(const std::string& name) const { return stored_ ? stored_->contains(name) : case_.formula.contains(name); }
  at::Tensor get(const std::string& name) const {
    return stored_ ? stored_->get(name) : formula_tensor(case_.salt, name, case_.formula.at(name));
  }
  size_t size() const {
    return stored_ ? stored_->names().size() : case_.formula.size() - 2;
  }  // input and target stand there too

 private:
  const ModelCase& case_;
  std::optional<StoredTensors> stored_;
};

}  // namespace

model::ModelPtr build_case_model(const ModelCase& c) {
  model::Registry registry;
  model::add_builtin_models(registry);
  model::ModelPtr model = registry.at(c.config.model.model).build(c.config.model, c.shape);
  const WeightSource source(c);
  const at::NoGradGuard no_grad;
  const auto parameters = model->named_parameters();
  if (parameters.size() != source.size()) {
    refuse(c, cat("parameters of the model=", parameters.size(), ", of the case=", source.size()));
  }
  for (const auto& parameter : parameters) {
    if (!source.contains(parameter.key())) refuse(c, cat("no weight for parameter=", parameter.key()));
    const at::Tensor weight = source.get(parameter.key());
    if (weight.sizes() != parameter->sizes()) {
      refuse(c, cat("parameter=", parameter.key(), ", shape=", parameter->sizes(), ", shape in the case=", weight.sizes()));
    }
    parameter->copy_(weight);
  }
  return model;
}

at::Tensor case_input(const ModelCase& c, const std::string& name) {
  if (!c.formula.empty()) return formula_tensor(c.salt, name, c.formula.at(name));
  return StoredTensors(c.inputs_folder / "inputs.safetensors").get(name);
}

}  // namespace welkin::train::reference
