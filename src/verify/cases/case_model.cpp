// SPDX-License-Identifier: Apache-2.0
// Tensors of a case, and its model filled with them.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include "core/error.h"
#include "core/text.h"
#include "verify/cases/model_case.h"

namespace welkin::verify {
namespace {

[[noreturn]] void refuse_weights(const ModelCase& c, const std::string& what) {
  throw DataError("reference", cat("the case does not fit the model: ", what, ", case=", c.folder->path().string()),
                  "Check the constructor in meta.json against the weights");
}

}  // namespace

std::vector<std::string> TensorSource::names() const {
  if (formula.empty()) return folder->need_tensors(stem).names();
  std::vector<std::string> all;
  for (const auto& row : formula) all.push_back(row.first);
  return all;
}

bool TensorSource::contains(const std::string& name) const {
  return formula.empty() ? folder->need_tensors(stem).contains(name) : formula.contains(name);
}

std::vector<int64_t> TensorSource::shape(const std::string& name) const {
  if (formula.empty()) return folder->need_tensors(stem).info(name).shape;
  const auto found = formula.find(name);
  if (found != formula.end()) return found->second.shape;
  throw DataError("reference", cat("meta.json describes no such tensor: tensor=", name, ", case=", folder->path().string()),
                  "Add it to `tensors`");
}

at::Tensor TensorSource::get(const std::string& name) const {
  if (!formula.empty()) {
    shape(name);
    return formula_tensor(salt, name, formula.at(name));
  }
  at::Tensor tensor = folder->need_tensors(stem).get(name);
  if (tensor.is_floating_point() && at::isfinite(tensor).all().item<bool>()) return tensor;
  throw DataError(
      "reference",
      cat("values are not finite numbers: tensor=", name, ", file=", (folder->path() / stem).string(), ".safetensors"),
      "The file is damaged: fetch or write the case again");
}

model::ModelPtr build_case_model(const ModelCase& c) {
  model::Registry registry;
  model::add_builtin_models(registry);
  model::ModelPtr model = registry.at(c.config.model.model).build(c.config.model, c.shape);
  const at::NoGradGuard no_grad;
  const auto parameters = model->named_parameters();
  for (const auto& parameter : parameters) {
    if (!c.weights.contains(parameter.key())) refuse_weights(c, cat("no weight for parameter=", parameter.key()));
    const std::vector<int64_t> shape = c.weights.shape(parameter.key());
    if (at::IntArrayRef(shape) != parameter->sizes()) {
      refuse_weights(
          c, cat("wrong shape: parameter=", parameter.key(), ", model=", parameter->sizes(), ", case=[", join(shape, ", "), "]"));
    }
    parameter->copy_(c.weights.get(parameter.key()));  // one at a time: two copies of weights by formula need not fit
  }
  for (const std::string& name : c.weights.names()) {
    if (!parameters.contains(name)) refuse_weights(c, cat("the model has no parameter=", name));
  }
  model->eval();
  return model;
}

}  // namespace welkin::verify
