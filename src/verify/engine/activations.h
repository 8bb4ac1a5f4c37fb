// SPDX-License-Identifier: Apache-2.0
// Captures intermediate values of a model at its sites, under the names that reference cases use: "act.block0.norm1".
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "model/base/model.h"

namespace welkin::verify {

// A value of the last forward pass, and its place in the order of that pass.
struct Activation {
  at::Tensor value;  // undefined when the model has no such place
  int64_t order = 0;
};

class ActivationCapture {
 public:
  // Installs at every site of the model; values are kept while `enabled`. The capture outlives the model's forward passes.
  explicit ActivationCapture(model::Model& model);
  ActivationCapture(const ActivationCapture&) = delete;
  ActivationCapture& operator=(const ActivationCapture&) = delete;

  bool enabled = true;
  void clear();

  Activation find(const std::string& activation) const;
  // The place in the forward pass at which a parameter is used: the order of the value that it helps to make.
  int64_t order_of(const std::string& parameter) const;

 private:
  // Input and output of a site, the first tensor of each.
  struct SiteValues {
    Activation in, out;
  };
  Activation in_of(const std::string& site) const;
  Activation out_of(const std::string& site) const;

  std::map<std::string, SiteValues> values_;
  int64_t count_ = 0;
};

}  // namespace welkin::verify
