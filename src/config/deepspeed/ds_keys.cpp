// SPDX-License-Identifier: Apache-2.0
#include "config/deepspeed/ds_keys.h"

#include <algorithm>

#include "core/text.h"

namespace welkin::config {
namespace {

using enum DsRule;

// DeepSpeed's names of types; null means that of the gradients.
DsValue gradient_type(const YamlNode& node) {
  if (node.text == "fp32") return {.text = "none"};
  if (node.text == "fp16") return {.text = "fp16"};
  if (node.text == "bf16" || node.text == "bfp16") return {.text = "bf16"};
  return {.problem = "is none of fp32, fp16, bf16"};
}

DsValue full_precision(const YamlNode& node) {
  const DsValue value = ds_switch(node);
  return value.text == "true" ? DsValue{.text = "none"} : DsValue{.problem = value.problem};
}

std::vector<DsKey> batch_rows() {
  return {
      {"train_batch_size", Combined, "loop.global_batch_size", "samples of an optimizer step over all data-parallel ranks"},
      {"train_micro_batch_size_per_gpu", Combined, "loop.micro_batch_size", "samples of a forward pass of a rank"},
      {"gradient_accumulation_steps", Combined, "loop.micro_batch_size",
       "forward passes of a step: train_batch_size = train_micro_batch_size_per_gpu x this x data-parallel ranks is checked, and "
       "what is absent follows from it"},
      {"gradient_clipping", Key, "optimizer.clip_norm", "largest norm of the gradient; 0 = none", ds_number},
      {"steps_per_print", Key, "output.log_every_n_steps", "steps between log lines", ds_whole},
      {"dataloader_drop_last", NoEffect, "", "the data set says whether a short last batch is dropped"},
  };
}

std::vector<DsKey> ds_precision_rows() {
  return {
      {"fp16.enabled", Combined, "precision.amp_mode", "true: fp16 autocast; false: not fp16"},
      {"fp16.auto_cast", NoEffect, "", "amp_mode is always autocast, of float32 weights"},
      {"fp16.loss_scale", Combined, "precision.loss_scale",
       "0: dynamic; else a scale that never changes (loss_scale_min the same)"},
      {"fp16.initial_scale_power", Combined, "precision.loss_scale", "the first scale is 2 to this power"},
      {"fp16.loss_scale_window", Combined, "precision.loss_scale_window", "clean steps before the scale grows"},
      {"fp16.hysteresis", NoEffect, "", "every overflow lowers the scale, as in PyTorch"},
      {"fp16.consecutive_hysteresis", NoEffect, "", "as hysteresis"},
      {"fp16.min_loss_scale", Combined, "precision.loss_scale_min", "smallest scale"},
      {"fp16.fp16_master_weights_and_grads", OnlyOff, "", "Weights and gradients are kept in float32: take it out"},
      {"bf16.enabled", Combined, "precision.amp_mode", "true: bf16 autocast; false: not bf16"},
      {"bf16.immediate_grad_update", NoEffect, "", "gradients accumulate in float32 as they come"},
      {"bf16.check_grad_overflow", NoEffect, "", "gradients are always looked at (on_nonfinite)"},
      {"bf16.bf16_master_weights_and_grads", OnlyOff, "", "Weights and gradients are kept in float32: take it out"},
      {"bf16.bf16_optimizer_states", OnlyOff, "", "Say optimizer_state: bf16 instead"},
      {"bfloat16.enabled", Combined, "precision.amp_mode", "older name of bf16.enabled"},
      {"torch_autocast.enabled", Combined, "precision.amp_mode", "true: autocast to torch_autocast.dtype"},
      {"torch_autocast.dtype", Combined, "precision.amp_mode", "bfloat16 or float16"},
      {"torch_autocast.lower_precision_safe_modules", NoEffect, "", "the operators' own rule says what is cast"},
      {"amp", OnlyOff, "", "APEX is not here: use the section fp16 or bf16"},
      {"communication_data_type", Key, "parallel.compress_gradients", "type in which gradients travel: fp32, fp16 or bf16",
       gradient_type},
      {"seq_parallel_communication_data_type", NoEffect, "", "activations travel in their own type"},
      {"fp32_allreduce", Key, "parallel.compress_gradients", "true: gradients travel in float32", full_precision},
      {"data_types.grad_accum_dtype", OnlyOff, "", "Gradients accumulate in float32: say fp32 or take it out", nullptr, "fp32"},
      {"prescale_gradients", NoEffect, "", "gradients are divided by the number of ranks before they are summed"},
      {"gradient_predivide_factor", NoEffect, "", "as prescale_gradients"},
      {"sparse_gradients", NoEffect, "", "no gradient is sparse here"},
  };
}

DsValue wandb_tracker(const YamlNode& node) {
  DsValue value = ds_switch(node);
  if (value.problem.empty()) value.text = value.text == "true" ? "[wandb]" : "";
  return value;
}

std::vector<DsKey> parallel_rows() {
  return {
      {"tensor_parallel.autotp_size", Key, "parallel.tensor_parallel", "ranks that share the weights of a layer", ds_whole},
      {"tensor_parallel.tp_size", Key, "parallel.tensor_parallel", "older name of autotp_size", ds_whole},
      {"sequence_parallel_size", Key, "parallel.context_parallel",
       "ranks that share the tokens of a sample; context_mode says how, all_to_all is DeepSpeed's way", ds_whole},
      {"pipeline.stages", Key, "parallel.pipeline_parallel", "stages of a pipeline; micro-batches are those of the batch",
       ds_whole},
      {"pipeline", NoEffect, "", "pipeline_schedule and pipeline_split say how a pipeline runs"},
      {"zero_allow_untested_optimizer", NoEffect, "", "every optimizer is tested with every stage"},
      {"zero_force_ds_cpu_optimizer", NoEffect, "", "concerns offload alone"},
      {"disable_allgather", NoEffect, "", "an old workaround of DeepSpeed's"},
      {"use_node_local_storage", NoEffect, "", "a checkpoint is one folder"},
      {"activation_checkpointing.number_checkpoints", Combined, "loop.activation_checkpointing_blocks",
       "a number: activation_checkpointing: blocks, in so many of them"},
      {"activation_checkpointing.partition_activations", NoEffect, "", "sequence_parallel splits what blocks keep"},
      {"activation_checkpointing.cpu_checkpointing", Combined, "backend.offload",
       "true: activations are moved to the host's memory, of a GPU, or into the file of offload_path"},
      {"activation_checkpointing.contiguous_memory_optimization", NoEffect, "", "the allocator's work"},
      {"activation_checkpointing.synchronize_checkpoint_boundary", NoEffect, "", "for debugging DeepSpeed"},
      {"activation_checkpointing.profile", NoEffect, "", "welkin bench --layers times each layer"},
      {"checkpoint.tag_validation", NoEffect, "", "ranks always agree about a checkpoint's name"},
      {"checkpoint.load_universal", NoEffect, "", "every checkpoint loads in every layout"},
      {"checkpoint.use_node_local_storage", NoEffect, "", "a checkpoint is one folder, which all ranks see"},
      {"checkpoint.parallel_write", NoEffect, "", "how a checkpoint is written follows from the layout"},
      {"checkpoint.writer", NoEffect, "", "as parallel_write"},
      {"load_universal_checkpoint", NoEffect, "", "every checkpoint loads in every layout"},
  };
}

std::vector<DsKey> report_rows() {
  return {
      {"wall_clock_breakdown", NoEffect, "", "--timeline and welkin bench time the parts of a step"},
      {"memory_breakdown", NoEffect, "", "welkin bench --memory counts what a rank holds"},
      {"dump_state", NoEffect, "", "the resolved configuration is printed and saved in the run folder"},
      {"tensorboard.enabled", NoEffect, "", "TensorBoard's events are always written, to the run folder"},
      {"tensorboard.output_path", NoEffect, "", "the run folder follows from expdir, config and run_num"},
      {"tensorboard.job_name", NoEffect, "", "as output_path"},
      {"csv_monitor.enabled", Key, "output.csv", "what goes to TensorBoard as a table, too", ds_switch},
      {"csv_monitor.output_path", NoEffect, "", "metrics.csv lies in the run folder"},
      {"csv_monitor.job_name", NoEffect, "", "as output_path"},
      {"wandb.enabled", Key, "output.track", "offline runs for wandb sync, below expdir", wandb_tracker},
      {"wandb", NoEffect, "", "group, team and project are those of wandb sync"},
      {"comet", OnlyOff, "", "There is no such monitor: use csv_monitor, or TensorBoard's files"},
      {"flops_profiler", NoEffect, "", "the log has FLOP/s and MFU; welkin bench --layers has them by layer"},
      {"comms_logger", NoEffect, "", "a run logs calls and bytes of its collectives at its end"},
      {"autotuning", OnlyOff, "", "Take it out; welkin bench all --trials compares settings"},
      {"elasticity", OnlyOff, "", "Take it out; a run continues on another number of ranks with --resume"},
      {"aio", NoEffect, "", "concerns offload to disks alone"},
      {"nebula", OnlyOff, "", "Checkpoints are folders of files: take it out"},
      {"hybrid_engine", OnlyOff, "", "It is for generating text: take it out"},
      {"compile", NoEffect, "", "operators are compiled code"},
      {"compression_training", OnlyOff, "", "Weights are not quantized or pruned: take it out"},
      {"quantize_training", OnlyOff, "", "Weights are not quantized: take it out"},
      {"data_efficiency", OnlyOff, "", "Samples are drawn alike: take it out"},
      {"curriculum_learning", OnlyOff, "", "Samples are drawn alike: take it out"},
      {"progressive_layer_drop", OnlyOff, "", "The ViT has drop-path by its key dropout: take it out"},
      {"eigenvalue", OnlyOff, "", "It belongs to quantization, which is not here: take it out"},
      {"sparse_attention", OnlyOff, "", "Attention is dense: take it out"},
      {"graph_harvesting", NoEffect, "", "cuda_graph records steps"},
      {"vocabulary_size", NoEffect, "", "there is no vocabulary"},
  };
}

std::vector<DsKey> all_ds_rows() {
  std::vector<DsKey> rows = batch_rows();
  for (const auto& more : {ds_zero_keys(), ds_precision_rows(), ds_optimizer_keys(), parallel_rows(), report_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

std::string_view what_it_does(const DsKey& key) {
  switch (key.rule) {
    case Key:
    case Combined:
      return key.target;
    case NoEffect:
      return "no effect";
    case OnlyOff:
      break;
  }
  return "an error where it is on";
}

}  // namespace

const std::vector<DsKey>& ds_keys() {
  static const std::vector<DsKey> rows = all_ds_rows();
  return rows;
}

const DsKey* find_ds_key(std::string_view name) {
  const auto& rows = ds_keys();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const DsKey& key) { return key.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

bool is_ds_section(std::string_view name) {
  const auto& rows = ds_keys();
  return std::any_of(rows.begin(), rows.end(), [&](const DsKey& key) {
    return key.name.size() > name.size() && key.name.starts_with(name) && key.name[name.size()] == '.';
  });
}

std::string ds_markdown() {
  std::string text = "| key | here | meaning |\n| --- | --- | --- |\n";
  for (const DsKey& key : ds_keys()) {
    const std::string_view here = what_it_does(key);
    const bool is_path = here == key.target && !here.empty();
    const std::string off = key.off.empty() ? "" : cat(" (also off: ", key.off, ")");
    text += cat("| `", key.name, "` | ", is_path ? "`" : "", here, is_path ? "`" : "", off, " | ", key.meaning, " |\n");
  }
  return text;
}

}  // namespace welkin::config
