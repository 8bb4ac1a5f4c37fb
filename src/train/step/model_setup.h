// SPDX-License-Identifier: Apache-2.0
// A model for a data set: built by name, with initial weights, on a device; and its parameters under the names of checkpoints.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/MemoryFormat.h>

#include <optional>
#include <vector>

#include "data/sample/dataset.h"
#include "model/registry.h"
#include "parallel/shard/param_table.h"
#include "train/checkpoint/checkpoint.h"
#include "train/learn/registries.h"
#include "train/optim/optimizer.h"
#include "train/step/layout.h"

namespace welkin::train {

model::ModelShape shape_of(const data::SampleSpec& spec);

// ConfigError if the model adds an input to its output, or is fed its predictions, and one of these channels is clipped,
// logarithmic or normalised differently as input and as target.
void check_state_transforms(const config::RunConfig& config, const data::SampleSpec& spec);

// Builds the model and initialises it from the seed.
model::ModelPtr build_model(const Registries& registries, const config::RunConfig& config, const data::SampleSpec& spec,
                            c10::Device device);

// Puts convolution weights into the order that cuDNN takes, contiguous or channels-last; values and shapes stay. Called before
// anything points to them.
void to_memory_format(model::Model& model, bool channels_last);
// The same values for one weight.
at::Tensor in_memory_format(const at::Tensor& weight, bool channels_last);

// The format for tensors of so many dims: channels-last exists for four and five.
at::MemoryFormat memory_format(int64_t dims, bool channels_last);

// The cost of one sample; zeros when the model does not say.
model::ModelCost cost_of(const Registries& registries, const config::RunConfig& config, const data::SampleSpec& spec);

// The size of one block's attention; nothing when the model does not say.
std::optional<model::AttentionSize> attention_size(const Registries& registries, const config::RunConfig& config,
                                                   const data::SampleSpec& spec);

// The table's parameters and the model's buffers: the group "model" of a checkpoint.
CheckpointGroup model_group(const parallel::ParamTable& table, const model::Model& model);

// The trained parameters, in their order: of each the part that this rank has.
std::vector<OptimizerParameter> optimizer_parameters(const parallel::ParamTable& table, const Layout& layout);

}  // namespace welkin::train
