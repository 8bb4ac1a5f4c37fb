// SPDX-License-Identifier: Apache-2.0
// Captures intermediate values of a model at its sites, under the names that reference cases use: "act.block0.norm1".
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "model/model.h"

namespace welkin::train::reference {

// Site -> what went in and what came out of it, first tensor of each, in the last forward pass.
struct SiteValues {
  at::Tensor in, out;
};

class ActivationCapture {
 public:
  // Installs at every site of the model; values are kept while `enabled`. The capture outlives the model's forward passes.
  explicit ActivationCapture(model::Model& model);
  ActivationCapture(const ActivationCapture&) = delete;
  ActivationCapture& operator=(const ActivationCapture&) = delete;

  bool enabled = true;
  void clear() { values_.clear(); }

  // Undefined when the model has no such place.
  at::Tensor find(const std::string& activation) const;

 private:
  at::Tensor in_of(const std::string& site) const;
  at::Tensor out_of(const std::string& site) const;

  std::map<std::string, SiteValues> values_;
};

}  // namespace welkin::train::reference
