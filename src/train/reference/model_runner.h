// SPDX-License-Identifier: Apache-2.0
// Runs a reference case of a model through Welkin's own model, loss, metrics and optimizer, and compares every stored tensor.
#pragma once

#include <filesystem>
#include <vector>

#include "train/reference/comparison.h"
#include "train/reference/model_case.h"

namespace welkin::train::reference {

struct ModelReport {
  std::string name;
  std::vector<ComparisonRow> rows;
  double seconds = 0;

  int64_t count(Verdict verdict) const;
  // Something was compared and nothing failed.
  bool passed() const { return count(Verdict::Fail) == 0 && count(Verdict::Pass) > 0; }
};

// Forward with activations, loss, gradients of input and parameters, and the optimizer's trajectory where the case has one. On
// the CPU. DataError when names or shapes of the weights are not the model's.
ModelReport run_model_case(const ModelCase& c);

// The model of a case with its weights, and a tensor of the case's inputs ("input", "target").
model::ModelPtr build_case_model(const ModelCase& c);
at::Tensor case_input(const ModelCase& c, const std::string& name);

}  // namespace welkin::train::reference
