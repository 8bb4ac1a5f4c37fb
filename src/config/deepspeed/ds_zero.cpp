// SPDX-License-Identifier: Apache-2.0
// Rows of the section zero_optimization.
#include <algorithm>
#include <array>
#include <cstdint>

#include "config/deepspeed/ds_keys.h"
#include "config/deepspeed/ds_reader.h"
#include "core/text.h"

namespace welkin::config {
namespace {

using enum DsRule;

DsValue shard_stage(const YamlNode& node) {
  constexpr std::array<std::string_view, 4> kStages = {"none", "optimizer", "gradients", "full"};
  if (node.kind != YamlKind::Int || node.integer < 0 || node.integer > 3) return {.problem = "is none of 0, 1, 2, 3"};
  return {.text = std::string(kStages[static_cast<size_t>(node.integer)])};
}

// DeepSpeed counts elements, we count bytes of float32 gradients.
DsValue bucket_megabytes(const YamlNode& node) {
  if (DsValue value = ds_whole(node); !value.problem.empty()) return value;
  constexpr int64_t kElements = (int64_t{1} << 20) / 4;
  const auto elements = static_cast<int64_t>(node.number);
  return {.text = cat(std::max<int64_t>(1, elements / kElements + (elements % kElements != 0 ? 1 : 0)))};
}

// DeepSpeed counts elements. Only 0 has the same meaning in blocks.
DsValue prefetched_blocks(const YamlNode& node) {
  const DsValue value = ds_whole(node);
  return value.text == "0" || !value.problem.empty() ? value : DsValue{};
}

DsValue group_size(const YamlNode& node) {
  if (node.kind == YamlKind::Int && node.integer == -1) return {};
  return ds_whole(node);
}

constexpr std::string_view kOldOffload = "An older name: say offload_optimizer: {device: cpu} instead";
constexpr std::string_view kOldParameters = "An older name: say offload_param: {device: cpu} instead";
constexpr std::string_view kDevice = "zero_optimization.offload_optimizer.device",
                           kPath = "zero_optimization.offload_optimizer.nvme_path";
constexpr std::string_view kParameterDevice = "zero_optimization.offload_param.device",
                           kParameterPath = "zero_optimization.offload_param.nvme_path";
constexpr std::string_view kActivations = "activation_checkpointing.cpu_checkpointing";

// Reads which data a section moves, and the folder where it moves them into a file.
void read_place(DsReader& reader, std::string_view device_name, std::string_view path_name, const char* what,
                std::vector<std::string>& moved, std::string_view& origin, std::string& folder) {
  const YamlNode* device = reader.find(device_name);
  if (device == nullptr || device->text == "none") return;
  if (device->text != "cpu" && device->text != "nvme") {
    return reader.problem(device_name, cat("is none of none, cpu, nvme: ", device->text), "Say one of them");
  }
  moved.emplace_back(what);
  if (origin.empty()) origin = device_name;
  if (device->text == "cpu") return;
  const YamlNode* path = reader.find(path_name);
  if (path == nullptr || path->text.empty()) {
    return reader.problem(device_name, "is nvme, without a folder", "Give nvme_path");
  }
  if (!folder.empty() && folder != path->text) {
    return reader.problem(path_name, cat("is another folder than that of the optimizer: ", path->text, ", ", folder),
                          "Give one for both");
  }
  if (folder.empty()) reader.set("backend.offload_path", path->text, path_name);
  folder = path->text;
}

}  // namespace

void read_ds_offload(DsReader& reader) {
  std::vector<std::string> moved;
  std::string_view origin;
  std::string folder;
  read_place(reader, kDevice, kPath, "optimizer", moved, origin, folder);
  read_place(reader, kParameterDevice, kParameterPath, "parameters", moved, origin, folder);
  if (reader.text(kActivations, ds_switch) == "true") {
    moved.emplace_back("activations");
    if (origin.empty()) origin = kActivations;
  }
  if (!moved.empty()) reader.set("backend.offload", cat("[", join(moved, ", "), "]"), origin);
}

std::vector<DsKey> ds_zero_keys() {
  return {
      {"zero_optimization.stage", Key, "parallel.shard", "0, 1, 2, 3: none, optimizer, gradients, full", shard_stage},
      {"zero_optimization.reduce_bucket_size", Key, "parallel.bucket_cap_mb",
       "elements of a bucket of gradients, four bytes each, rounded up to MiB", bucket_megabytes},
      {"zero_optimization.allgather_bucket_size", NoEffect, "", "weights are gathered in the buckets of reduce_bucket_size"},
      {"zero_optimization.stage3_prefetch_bucket_size", Key, "parallel.shard_prefetch",
       "0: nothing is gathered ahead; else our own key holds, which counts blocks", prefetched_blocks},
      {"zero_optimization.mics_shard_size", Key, "parallel.shard_group", "ranks that share one training state; -1: all",
       group_size},
      {"zero_optimization.mics_hierarchical_params_gather", NoEffect, "", "the library of collectives knows the network"},
      {"zero_optimization.overlap_comm", NoEffect, "", "gradients are always reduced while the backward pass runs"},
      {"zero_optimization.contiguous_gradients", NoEffect, "", "gradients are packed into buckets as they come"},
      {"zero_optimization.reduce_scatter", NoEffect, "", "gradients are reduced to the rank that keeps them"},
      {"zero_optimization.allgather_partitions", NoEffect, "", "weights are gathered by one call of each bucket"},
      {"zero_optimization.use_multi_rank_bucket_allreduce", NoEffect, "", "a bucket holds pieces of all ranks"},
      {"zero_optimization.round_robin_gradients", NoEffect, "", "every parameter is cut over all ranks"},
      {"zero_optimization.sub_group_size", NoEffect, "", "concerns offload alone"},
      {"zero_optimization.stage3_max_live_parameters", NoEffect, "", "a block's weights are there while it computes"},
      {"zero_optimization.stage3_max_reuse_distance", NoEffect, "", "reshard_after_forward says whether they stay"},
      {"zero_optimization.stage3_param_persistence_threshold", NoEffect, "",
       "small weights outside of blocks stay during a pass"},
      {"zero_optimization.stage3_model_persistence_threshold", NoEffect, "", "as stage3_param_persistence_threshold"},
      {"zero_optimization.stage3_module_granularity_threshold", NoEffect, "", "units are the model's blocks"},
      {"zero_optimization.stage3_use_all_reduce_for_fetch_params", NoEffect, "", "weights are gathered"},
      {"zero_optimization.stage3_allgather_sequential", NoEffect, "", "one call for each block"},
      {"zero_optimization.stage3_gather_16bit_weights_on_model_save", NoEffect, "",
       "a checkpoint holds all weights, in float32; welkin ckpt export writes them as one file"},
      {"zero_optimization.stage3_gather_fp16_weights_on_model_save", NoEffect, "", "older name of the key above"},
      {kDevice, Combined, "backend.offload",
       "none; cpu: the optimizer's states in the host's memory, of a GPU; nvme: in a file of each rank"},
      {kPath, Combined, "backend.offload_path", "folder for device nvme"},
      {"zero_optimization.offload_optimizer", NoEffect, "", "buffers are offload_buffer_mib each, and pinned for a GPU"},
      {kParameterDevice, Combined, "backend.offload", "the same for the weights, with stage 3"},
      {kParameterPath, Combined, "backend.offload_path", "folder for device nvme; that of the optimizer where both are moved"},
      {"zero_optimization.offload_param", NoEffect, "", "other keys of it concern offload alone"},
      {"zero_optimization.cpu_offload", OnlyOff, "", kOldOffload},
      {"zero_optimization.cpu_offload_param", OnlyOff, "", kOldParameters},
      {"zero_optimization.cpu_offload_params", OnlyOff, "", kOldParameters},
      {"zero_optimization.cpu_offload_use_pin_memory", NoEffect, "", "concerns offload alone"},
      {"zero_optimization.zero_hpz_partition_size", OnlyOff, "",
       "Weights have no second copy in a node: mics_shard_size shares out within groups", nullptr, "1"},
      {"zero_optimization.zero_quantized_weights", OnlyOff, "", "Weights are not quantized on their way: take it out"},
      {"zero_optimization.zero_quantized_nontrainable_weights", OnlyOff, "", "Weights are not quantized: take it out"},
      {"zero_optimization.zero_quantized_gradients", OnlyOff, "", "Use communication_data_type: bf16"},
      {"zero_optimization.zeropp_loco_param", OnlyOff, "", "It belongs to quantized gradients, which are not here: take it out"},
      {"zero_optimization.load_from_fp32_weights", NoEffect, "", "checkpoints hold float32 weights"},
      {"zero_optimization.elastic_checkpoint", NoEffect, "", "every checkpoint loads in every layout"},
      {"zero_optimization.pipeline_loading_checkpoint", NoEffect, "", "ranks read what they keep"},
      {"zero_optimization.ignore_unused_parameters", NoEffect, "", "a parameter without gradient has a gradient of zero"},
      {"zero_optimization.legacy_stage1", NoEffect, "", "concerns an older DeepSpeed"},
      {"zero_optimization.memory_efficient_linear", NoEffect, "", "the backward pass gathers weights anew"},
      {"zero_optimization.override_module_apply", NoEffect, "", "initial weights are a function of seed and name"},
      {"zero_optimization.log_trace_cache_warnings", NoEffect, "", "the order of blocks is known"},
  };
}

}  // namespace welkin::config
