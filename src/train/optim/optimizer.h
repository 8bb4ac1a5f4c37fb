// SPDX-License-Identifier: Apache-2.0
// Optimizers on flat lists of parameters, in one pass over weight, gradient and states; those that need a norm have one more.
// They know no module, no rank and no schedule: if a rank holds a part of a parameter, StepInputs has the functions that add up
// the parts. Rate and found-inf are tensors on the parameters' device: a step never waits for the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "ops/update/part_runs.h"

namespace welkin::train {

// Elements of a part of a parameter that form a box of the whole.
struct PartBox {
  std::vector<int64_t> begin, extent;  // in the whole
  int64_t offset = 0;                  // of the first, in the memory of the part
  std::vector<int64_t> strides;        // in that memory
};

struct OptimizerParameter {
  std::string name;
  at::Tensor value;            // the float32 master; its .grad() is the gradient, with the same strides
  bool decays = true;          // true if weight_decay applies (parallel/shard/param_table.h decides)
  bool is_part = false;        // other ranks hold the rest of it
  int64_t whole_elements = 0;  // of all its parts; 0: `value` has all
  // For a part: the shape of the whole, and boxes that give the place of the part's elements in the whole and in its memory.
  std::vector<int64_t> whole_shape{};
  std::vector<PartBox> boxes{};
  ops::PartRuns runs{};

  std::vector<int64_t> shape() const { return is_part ? whole_shape : value.sizes().vec(); }
  int64_t elements() const { return whole_elements > 0 ? whole_elements : value.numel(); }
};

struct NamedState {
  std::string name;  // "exp_avg.<parameter>", or a scalar's own name
  at::Tensor value;  // saved; a resume copies into it
  // For a state that goes along the memory of its parameter without having its dims: the number of elements per value.
  int64_t run = 0;
  // For a state that is kept in a store: functions that read and set its values. `value` then has only shape, strides and type.
  std::function<at::Tensor()> read = {};
  std::function<void(const at::Tensor&)> write = {};

  int64_t held_bytes() const { return read ? 0 : static_cast<int64_t>(value.nbytes()); }
};

// (k, n) float32 or float64: k numbers for each of the n parameters, in the optimizer's order. Returns sums over the ranks that
// hold parts of a parameter, and the numbers of whole parameters as they are. Every rank calls it, once a step at most.
using SumOverParts = std::function<at::Tensor(const at::Tensor&)>;

// Adds up, in place, values of all ranks that hold a part: contiguous tensors, one for each of `rows` (of the parameters).
using AddOverParts = std::function<void(const std::vector<size_t>& rows, const std::vector<at::Tensor>& values)>;

// Work on whole parameters, by number in the list of rows. part() returns this rank's part, once. body() makes a tensor of the
// same shape from a whole, on one of the ranks that hold parts of it. take() gets this rank's part of the result.
struct WholeWork {
  std::function<at::Tensor(size_t)> part;
  std::function<at::Tensor(size_t, const at::Tensor&)> body;
  std::function<void(size_t, const at::Tensor&)> take;
};
using OnWholes = std::function<void(const std::vector<size_t>& rows, const WholeWork& work)>;

struct StepInputs {
  at::Tensor rate;              // () learning rate: float64 on the CPU, float32 on a GPU (what the fused kernels take)
  at::Tensor found_inf;         // () float32; 1: leave weights, states and step count as they are
  at::Tensor gradient_scale{};  // () float32 that gradients are multiplied by: unscaling and clipping; undefined: 1
  // Functions that ranks with parts call together, each with the same rows; empty: every parameter is whole.
  SumOverParts sum_over_parts{};
  AddOverParts add_over_parts{};
  OnWholes on_wholes{};
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Applies the gradients of all parameters. A parameter without a gradient is left alone.
  virtual void step(const StepInputs& inputs) = 0;
  // True if step() applies StepInputs::gradient_scale; otherwise it gets scaled gradients, and an undefined scale.
  virtual bool takes_gradient_scale() const { return false; }
  // Everything that a resume needs, in a fixed order.
  virtual std::vector<NamedState> states() = 0;
};

// The values that the update of a weight depends on, besides counts and rate: its own states and gradient; those of its
// parameter (and a sum over the parts); those of other parameters.
enum class UpdateScope { Element, Parameter, Model };

using OptimizerPtr = std::unique_ptr<Optimizer>;
using OptimizerFactory = std::function<OptimizerPtr(const config::RunConfig&, std::vector<OptimizerParameter>)>;

// torch.optim.Adam: weight decay is added to the gradient. Kingma and Ba, arXiv:1412.6980.
OptimizerPtr adam(const config::RunConfig& config, std::vector<OptimizerParameter> parameters);
// Decoupled weight decay. Loshchilov and Hutter, arXiv:1711.05101.
OptimizerPtr adamw(const config::RunConfig& config, std::vector<OptimizerParameter> parameters);
// v = momentum v + g; p -= rate v.
OptimizerPtr sgd(const config::RunConfig& config, std::vector<OptimizerParameter> parameters);
// The sign of a mix of average and gradient. Chen et al., arXiv:2302.06675, algorithm 2.
OptimizerPtr lion(const config::RunConfig& config, std::vector<OptimizerParameter> parameters);
// Adam's update, scaled to the norm of the parameter. You et al., arXiv:1904.00962, algorithm 2; biases and norms are not scaled,
// as in the authors' code.
OptimizerPtr lamb(const config::RunConfig& config, std::vector<OptimizerParameter> parameters);
// Momentum with a rate for each layer, the quotient of its norms. You et al., arXiv:1708.03888, algorithm 1; biases and norms
// take the rate as it is.
OptimizerPtr lars(const config::RunConfig& config, std::vector<OptimizerParameter> parameters);
// torch.optim.Adafactor; Shazeer and Stern, arXiv:1804.04235, algorithms 4 and 5. Factored, a weight of more than two dims is a
// matrix of its first dim. Every rank with a part holds the averages of the whole's rows and columns.
OptimizerPtr adafactor(const config::RunConfig& config, std::vector<OptimizerParameter> parameters);
// torch.optim.Muon for weights, AdamW for the rest. Jordan et al., kellerjordan.github.io/posts/muon; Liu et al.,
// arXiv:2502.16982. The iteration is in the weights' own type, on one of the ranks that hold parts of a matrix.
OptimizerPtr muon(const config::RunConfig& config, std::vector<OptimizerParameter> parameters);

// The `parameters` that have a gradient, as the parallel lists that the fused kernels take, in the order of memory. Strides
// that differ between a parameter and its gradient are an InternalError here: the result would be silently wrong.
struct StepLists {
  std::vector<at::Tensor> values, gradients;
  std::vector<size_t> rows;  // index into `parameters`
};
StepLists with_gradients(const std::vector<OptimizerParameter>& parameters, bool decays);

// () bool: this step is skipped.
at::Tensor is_skipped(const StepInputs& inputs);
// The scaled gradient, or zeros if the step is skipped, so that all values computed from it are finite.
at::Tensor safe_gradient(const StepInputs& inputs, const at::Tensor& gradient);
// target = value, unless the step is skipped.
void assign_unless_skipped(const StepInputs& inputs, const at::Tensor& target, const at::Tensor& value);

// Multiplies the gradients by `inputs.gradient_scale` in place: for kernels without this factor.
void apply_gradient_scale(const StepInputs& inputs, const std::vector<at::Tensor>& gradients);

// The same memory as a tensor of one dim. torch's fused kernels would copy a tensor of permuted dims into a contiguous one and
// back: an update of such weights took seven times as long. Contiguous tensors, and those with gaps, are returned unchanged.
at::Tensor in_memory_order(const at::Tensor& tensor);

// A zero state with the parameter's shape, dtype and strides.
at::Tensor state_like(const at::Tensor& value);

}  // namespace welkin::train
