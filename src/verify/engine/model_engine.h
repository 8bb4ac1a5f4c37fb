// SPDX-License-Identifier: Apache-2.0
// An engine runs the model of a case: in one process, or in many that gather their parts. The comparison (model_comparison.h)
// asks for whole tensors only and knows no rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "verify/cases/model_case.h"
#include "verify/cases/verify_options.h"
#include "verify/engine/activations.h"

namespace welkin::verify {

// A parameter, or its gradient, whole.
struct NamedTensor {
  std::string name;
  at::Tensor value;
  int64_t order = 0;  // of its use in the forward pass
};

class ModelEngine {
 public:
  virtual ~ModelEngine() = default;

  // Forward and backward pass; returns the loss. Output, activations and gradients are those of this step until the next.
  virtual double step() = 0;
  // Forward pass alone, with the present weights; returns the loss.
  virtual double loss_now() = 0;
  // One step of the optimizer with the gradients of step().
  virtual void update(double rate) = 0;

  virtual at::Tensor output() const = 0;  // of the last forward pass, without gradient
  virtual Activation activation(const std::string& name) const = 0;
  virtual std::vector<NamedTensor> gradients() const = 0;  // of the parameters, in the model's order, the loss scale divided out
  virtual at::Tensor input_gradient() const = 0;           // the same for the input
  virtual std::vector<NamedTensor> weights() const = 0;
  // Output in float32 for the same weights and input, to measure the error of low precision. Undefined if it is not available.
  virtual at::Tensor float32_output() = 0;
};

// One process on one device. ConfigError when the device is not there.
std::unique_ptr<ModelEngine> single_process_engine(const ModelCase& c, const VerifyOptions& options);

}  // namespace welkin::verify
