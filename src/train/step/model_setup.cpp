// SPDX-License-Identifier: Apache-2.0
#include "train/step/model_setup.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/accumulate.h>

#include <algorithm>

#include "config/draft/channel_settings.h"
#include "data/sample/sequences.h"
#include "data/sample/state_transform.h"
#include "train/checkpoint/format/tensor_boxes.h"
#include "train/checkpoint/whole_tensors.h"

namespace welkin::train {

model::ModelShape shape_of(const data::SampleSpec& spec) {
  return {.in_channels = spec.input.shape.at(0),
          .out_channels = spec.target.shape.at(0),
          .grid = {spec.input.shape.begin() + 1, spec.input.shape.end()},
          .newest_input_channel = spec.newest_input_channel,
          .earlier = spec.earlier_target,
          .out_names = spec.target.channels};
}

namespace {

// The input channel that residual prediction adds to each target channel; -1: none.
std::vector<int64_t> added_channels(const config::ModelConfig& config, const data::SampleSpec& spec) {
  std::vector<int64_t> added = spec.earlier_target;
  for (int64_t c = 0; spec.earlier_target.empty() && c < spec.target.shape.front(); ++c)
    added.push_back(spec.newest_input_channel + c);
  const std::vector<std::string>& names = spec.target.channels;
  std::vector<bool> except;
  if (!config.residual_except.empty()) except = config::chosen_channels(config.residual_except, "residual_except", names);
  except.resize(added.size(), false);
  for (size_t c = 0; c < added.size(); ++c) {
    // For boxes the input may be another quantity: the user decides what is added to what.
    const auto input = static_cast<size_t>(added[c]);  // -1 is behind all of them
    const bool is_same_quantity =
        c < names.size() && input < spec.input.channels.size() && spec.input.channels[input] == names[c];
    if (except[c] || !is_same_quantity) added[c] = -1;
  }
  return added;
}

}  // namespace

void check_state_transforms(const config::RunConfig& config, const data::SampleSpec& spec) {
  if (config.model.residual)
    data::check_same_transforms(spec, added_channels(config.model, spec), "model", "residual: true adds the input to the output");
  const bool feeds_back = config.loss.multistep.most() > 1 || config.loss.replay_buffer > 0;
  if (feeds_back && data::is_state_of_target(spec))
    data::check_same_transforms(spec, data::earlier_channels(spec), "rollout", "the prediction is not the next input");
}

model::ModelPtr build_model(const Registries& registries, const config::RunConfig& config, const data::SampleSpec& spec,
                            c10::Device device) {
  model::ModelPtr model = registries.models.at(config.model.model).build(config.model, shape_of(spec));
  model->initialise(config.loop.seed);
  model->to(device);
  if (device.is_cuda()) to_memory_format(*model, config.backend.channels_last);
  return model;
}

// The CPU kernels keep convolution weights in an order of their own, from which cuDNN would copy them in every step.
void to_memory_format(model::Model& model, bool channels_last) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : model.parameters()) parameter.set_data(in_memory_format(parameter, channels_last));
}

at::Tensor in_memory_format(const at::Tensor& weight, bool channels_last) {
  if (weight.dim() != 4 && weight.dim() != 5) return weight;
  return weight.contiguous(memory_format(weight.dim(), channels_last));
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
    group.tensors.push_back(
        {.name = row.name, .value = row.keeps_shard() ? row.shard : row.local, .fetch = row.read, .store = row.write});
  for (const auto& buffer : model.named_buffers()) group.tensors.push_back({buffer.key(), buffer.value()});
  return group;
}

namespace {

// A rank has its share of each block along `dim`, with all the inner dims.
ops::PartRuns runs_of(const PiecePlace& place) {
  ops::PartRuns runs{.begin = place.begin};
  if (place.layout.ranks == 1) return runs;
  const std::vector<int64_t>& order = place.layout.order;
  runs.length = 1;
  for (auto dim = std::ranges::find(order, place.layout.dim); dim != order.end(); ++dim) {
    runs.length *= place.whole_shape[static_cast<size_t>(*dim)];
  }
  runs.length /= place.layout.ranks * place.layout.blocks;
  runs.parts = place.layout.ranks;
  runs.part = place.part;
  return runs;
}

void describe_part(OptimizerParameter& parameter, const parallel::ParamRow& row, const Layout& layout) {
  const PiecePlace place = place_of_trained(row, layout.groups, layout.sharding.shards);
  parameter.whole_shape = row.global_shape;
  for (const PieceBox& box : boxes_of_piece(place, parameter.value.numel())) {
    parameter.boxes.push_back({box.begin, box.extent, box.offset, box.strides});
  }
  parameter.runs = runs_of(place);
}

}  // namespace

std::vector<OptimizerParameter> optimizer_parameters(const parallel::ParamTable& table, const Layout& layout) {
  std::vector<OptimizerParameter> parameters;
  for (const parallel::ParamRow& row : table.rows()) {
    if (!row.local.requires_grad()) continue;
    const bool is_split = layout.groups.along(parallel::Axis::Tp).size() > 1 && row.placements[parallel::Axis::Tp].sharded();
    parameters.push_back({.name = row.name,
                          .value = row.trained(),
                          .decays = row.decay == parallel::DecayGroup::Decay,
                          .is_part = is_split || row.shard.defined(),
                          .whole_elements = c10::multiply_integers(row.global_shape)});
    if (parameters.back().is_part) describe_part(parameters.back(), row, layout);
  }
  return parameters;
}

}  // namespace welkin::train
