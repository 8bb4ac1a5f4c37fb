// SPDX-License-Identifier: Apache-2.0
// The table of a model's parameters. Optimizer, clipping, checkpoints and replica checks work on it, never on the modules.
// A parameter may be any dense permutation of its logical dims. Its gradient and states share its strides, since the fused
// optimizers walk memory and would be silently wrong otherwise.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/segment.h"
#include "parallel/comm/group.h"
#include "parallel/mesh/placement.h"
#include "parallel/shard/memory_split.h"

namespace welkin::parallel {

// Selects the parameters with weight decay.
enum class DecayGroup {
  Decay,    // weights of matmuls and convolutions
  NoDecay,  // biases, norms, position embeddings
};

// Decay for names "*.weight" with at least two dims.
DecayGroup decay_group_of(const std::string& name, at::IntArrayRef shape);

struct ParamRow {
  std::string name;
  std::vector<std::string> other_names{};  // further names of the same tensor in the module: tied weights
  std::vector<int64_t> global_shape;
  Placements placements;
  // The axes over which members hold partial sums as their gradients, because each sees a part of the tokens. Over the other
  // axes that do not split the parameter every member has the complete gradient.
  AxisSet partial_over;
  at::Tensor local;  // the module's own leaf, not a copy
  // With sharded training state (parallel/sharding): this rank's piece of the memory of `local`, which the optimizer updates;
  // otherwise undefined. It may be empty.
  at::Tensor shard;
  MemorySplit split{};
  int64_t split_block = 1;  // elements; pieces begin at multiples of it
  // The type in which pieces are gathered, if not their own. `local` then has rounded values, and `shard` is not a view of it
  // but keeps the values that the optimizer updates.
  std::optional<at::ScalarType> gathered_as;
  // If `local` has memory only temporarily (--offload parameters): functions that read and set its values.
  std::function<at::Tensor()> read{};
  std::function<void(const at::Tensor&)> write{};
  bool is_released = false;       // `local` has memory only while it is used; `shard` is then no view of it
  bool is_split_over_cp = false;  // pieces are split over dp x cp
  int64_t chunk = 0;              // number of its stage among the stages of a pipeline's rank
  // For tied weights: later stages of this rank that use them, too, and the ranks whose stages use them, each with its own
  // copy. One member if there are no other copies.
  std::vector<int64_t> other_chunks{};
  Group holders{};
  DecayGroup decay = DecayGroup::Decay;
  std::map<std::string, at::Tensor> states;  // by role ("exp_avg"): shape, strides and device of `local`

  int64_t held_bytes() const;  // bytes of weights, at present
  // True if the segment uses this parameter, under any of its names.
  bool is_held_by(const model::Segment& segment) const;
  // True for the one copy that counts when the model's parameters are summed.
  bool is_counted() const { return holders.group_rank() == 0; }
  at::ScalarType gathered_type() const { return gathered_as.value_or(local.scalar_type()); }
  // True if `shard`, not `local`, has the master values.
  bool keeps_shard() const { return is_released || gathered_as.has_value(); }
  const at::Tensor& trained() const { return shard.defined() ? shard : local; }
  at::Tensor gradient() const { return trained().grad(); }  // undefined before the first backward pass
  // A state of zeros, float32, with the strides of `local`. InternalError when the role is taken.
  at::Tensor& add_state(const std::string& role);
};

class ParamTable {
 public:
  // Rows in the order of registration, everything replicated, global shape = local shape. Rows refer to the module's tensors. A
  // tensor with several names (tied weights) has one row under the first name, which lists the others.
  static ParamTable of(const torch::nn::Module& module);

  std::vector<ParamRow>& rows() { return rows_; }
  const std::vector<ParamRow>& rows() const { return rows_; }
  ParamRow& at(const std::string& name);  // ConfigError with the nearest names when absent
  int64_t num_parameters() const;         // elements of the global shapes, of the whole model
  // Names of the whole model's parameters, in the order of registration.
  const std::vector<std::string>& names() const { return names_; }

  // Removes all other rows and frees the memory of their parameters: other ranks have them. Call it before anything else sees
  // the table.
  void keep(const std::function<bool(const ParamRow&)>& wanted);

  // InternalError when a parameter is not dense and non-overlapping, or a gradient or state has other strides than its parameter.
  void check_strides() const;

 private:
  std::vector<ParamRow> rows_;
  std::vector<std::string> names_;
  int64_t elsewhere_ = 0;  // elements of rows on other ranks
};

}  // namespace welkin::parallel
