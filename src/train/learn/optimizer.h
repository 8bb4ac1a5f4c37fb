// SPDX-License-Identifier: Apache-2.0
// Optimizers on flat lists of parameters, through torch's fused kernels (one pass over weight, gradient and states). They know no
// module, no rank and no schedule. Rate and found-inf are tensors on the parameters' device: a step never waits for the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/schema/run_config.h"

namespace welkin::train {

struct OptimizerParameter {
  std::string name;
  at::Tensor value;    // the float32 master; its .grad() is the gradient, with the same strides
  bool decays = true;  // whether weight_decay applies (parallel/shard/param_table.h says to which)
};

struct NamedState {
  std::string name;  // "exp_avg.<parameter>", or a scalar's own name
  at::Tensor value;  // to be saved; a resume copies into it
};

struct StepInputs {
  at::Tensor rate;              // () learning rate: float64 on the CPU, float32 on a GPU (what the fused kernels take)
  at::Tensor found_inf;         // () float32; 1: leave weights, states and step count as they are
  at::Tensor gradient_scale{};  // () float32 that gradients are multiplied by: unscaling and clipping; undefined: 1
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Applies the gradients of all parameters. A parameter without a gradient is left alone.
  virtual void step(const StepInputs& inputs) = 0;
  // Whether step() heeds StepInputs::gradient_scale; otherwise it gets gradients that are scaled already, and none.
  virtual bool takes_gradient_scale() const { return false; }
  // Everything that a resume needs, in a fixed order.
  virtual std::vector<NamedState> states() = 0;
};

using OptimizerPtr = std::unique_ptr<Optimizer>;
using OptimizerFactory = std::function<OptimizerPtr(const config::RunConfig&, std::vector<OptimizerParameter>)>;

// torch.optim.Adam: weight decay is added to the gradient. Kingma and Ba, arXiv:1412.6980.
OptimizerPtr adam(const config::RunConfig& config, std::vector<OptimizerParameter> parameters);
// Decoupled weight decay. Loshchilov and Hutter, arXiv:1711.05101.
OptimizerPtr adamw(const config::RunConfig& config, std::vector<OptimizerParameter> parameters);
// v = momentum v + g; p -= rate v.
OptimizerPtr sgd(const config::RunConfig& config, std::vector<OptimizerParameter> parameters);

// Those of `parameters` that have a gradient, as the parallel lists that the fused kernels take, in the order of memory: strides
// that differ between a parameter and its gradient are an InternalError here, since the result would be silently wrong.
struct StepLists {
  std::vector<at::Tensor> values, gradients;
  std::vector<size_t> rows;  // index into `parameters`
};
StepLists with_gradients(const std::vector<OptimizerParameter>& parameters, bool decays);

// Multiplies the gradients by `inputs.gradient_scale` in place: for kernels that do not.
void apply_gradient_scale(const StepInputs& inputs, const std::vector<at::Tensor>& gradients);

// The same memory as a tensor of one dim. torch's fused kernels would copy a tensor of permuted dims into a contiguous one and
// back, for which an update of such weights took seven times as long. A contiguous tensor, and one with gaps, as it is.
at::Tensor in_memory_order(const at::Tensor& tensor);

// A zero state with the parameter's shape, dtype and strides.
at::Tensor state_like(const at::Tensor& value);

}  // namespace welkin::train
