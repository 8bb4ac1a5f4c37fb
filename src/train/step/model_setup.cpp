// SPDX-License-Identifier: Apache-2.0
#include "train/step/model_setup.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/accumulate.h>

namespace welkin::train {

model::ModelShape shape_of(const data::SampleSpec& spec) {
  return {.in_channels = spec.input.shape.at(0),
          .out_channels = spec.target.shape.at(0),
          .grid = {spec.input.shape.begin() + 1, spec.input.shape.end()},
          .newest_input_channel = spec.newest_input_channel};
}

model::ModelPtr build_model(const Registries& registries, const config::RunConfig& config, const data::SampleSpec& spec,
                            c10::Device device) {
  model::ModelPtr model = registries.models.at(config.model.model).build(config.model, shape_of(spec));
  model->initialise(config.loop.seed);
  model->to(device);
  if (device.is_cuda()) to_memory_format(*model, config.backend.channels_last);
  return model;
}

// The CPU's kernels keep the weights of convolutions in an order of their own, out of which cuDNN would copy them in every step.
void to_memory_format(model::Model& model, bool channels_last) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : model.parameters()) {
    if (parameter.dim() != 4 && parameter.dim() != 5) continue;
    parameter.set_data(parameter.contiguous(memory_format(parameter.dim(), channels_last)));
  }
}

at::MemoryFormat memory_format(int64_t dims, bool channels_last) {
  if (!channels_last || dims < 4 || dims > 5) return at::MemoryFormat::Contiguous;
  return dims == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
}

model::ModelCost cost_of(const Registries& registries, const config::RunConfig& config, const data::SampleSpec& spec) {
  const auto& cost = registries.models.at(config.model.model).cost;
  return cost ? cost(config.model, shape_of(spec)) : model::ModelCost{};
}

std::optional<model::AttentionSize> attention_size(const Registries& registries, const config::RunConfig& config,
                                                   const data::SampleSpec& spec) {
  const auto& attention = registries.models.at(config.model.model).attention;
  if (!attention) return std::nullopt;
  return attention(config.model, shape_of(spec));
}

CheckpointGroup model_group(const parallel::ParamTable& table, const model::Model& model) {
  CheckpointGroup group{.name = "model", .tensors = {}};
  for (const parallel::ParamRow& row : table.rows())
    group.tensors.push_back({row.name, row.keeps_shard() ? row.shard : row.local});
  for (const auto& buffer : model.named_buffers()) group.tensors.push_back({buffer.key(), buffer.value()});
  return group;
}

std::vector<OptimizerParameter> optimizer_parameters(const parallel::ParamTable& table) {
  std::vector<OptimizerParameter> parameters;
  for (const parallel::ParamRow& row : table.rows()) {
    if (!row.local.requires_grad()) continue;
    parameters.push_back({.name = row.name,
                          .value = row.trained(),
                          .decays = row.decay == parallel::DecayGroup::Decay,
                          .is_part = row.placements[parallel::Axis::Tp].sharded() || row.shard.defined(),
                          .whole_elements = c10::multiply_integers(row.global_shape)});
  }
  return parameters;
}

}  // namespace welkin::train
