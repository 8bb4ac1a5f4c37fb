// SPDX-License-Identifier: Apache-2.0
// Rows of the components `loop` and `output`.
#include "config/schema/key.h"

namespace welkin::config {
namespace {

template <auto... Members>
constexpr auto kLoop = &member<&RunConfig::loop, Members...>;
template <auto... Members>
constexpr auto kOutput = &member<&RunConfig::output, Members...>;

using L = LoopConfig;
using O = OutputConfig;

std::vector<Key> batch_keys() {
  return {
      {.flat = "global_batch_size",
       .path = "loop.global_batch_size",
       .field = kLoop<&L::global_batch_size>,
       .summary = "samples per optimizer step over all data-parallel ranks",
       .unit = "samples",
       .range = between(1, 1 << 30),
       .tutorials = kAllTutorials,
       .common = Common::Steps},
      {.flat = "base_batch_size",
       .path = "loop.base_batch_size",
       .field = kLoop<&L::base_batch_size>,
       .summary = "batch size at which start_lr holds without scaling",
       .unit = "samples",
       .range = between(1, 1 << 30),
       .tutorials = kUnetTutorials},
      {.flat = "local_batch_size",
       .path = "loop.local_batch_size",
       .field = kLoop<&L::local_batch_size>,
       .summary = "samples per step and rank; sets global_batch_size to the data-parallel size times it",
       .unit = "samples",
       .range = between(1, 1 << 30),
       .is_flag = true,
       .flag_tutorials = kAllTutorials,
       .free = true,
       .common = Common::Steps},
      {.flat = "micro_batch_size",
       .path = "loop.micro_batch_size",
       .field = kLoop<&L::micro_batch_size>,
       .summary =
           "samples per forward pass, gradients accumulate over the local batch; 0 = the whole of it, auto = the largest divisor "
           "of it that memory allows",
       .unit = "samples",
       .range = between(0, 1 << 30),
       .is_flag = true,
       .free = true},
      {.flat = "activation_checkpointing",
       .path = "loop.activation_checkpointing",
       .field = kLoop<&L::activation_checkpointing>,
       .summary = "parts of the model that keep their inputs alone and run again in the backward pass: less memory for another "
                  "forward pass of them, the same numbers; those whose site matches, or what fits a step into so many GiB",
       .is_flag = true,
       .free = true},
      {.flat = "activation_checkpointing_blocks",
       .path = "loop.activation_checkpointing_blocks",
       .field = kLoop<&L::activation_checkpointing_blocks>,
       .summary = "in how many blocks, from the first on; 0 = in all",
       .range = at_least(0),
       .is_flag = true,
       .free = true},
      {.flat = "num_epochs",
       .path = "loop.num_epochs",
       .field = kLoop<&L::num_epochs>,
       .summary = "length of the run in passes over the data",
       .unit = "epochs",
       .range = at_least(1),
       .tutorials = kUnetTutorials,
       .is_flag = true,
       .flag_tutorials = kUnetTutorials,
       .free = true,
       .common = Common::Training},
      {.flat = "num_iters",
       .path = "loop.num_iters",
       .field = kLoop<&L::num_iters>,
       .summary = "length of the run in optimizer steps",
       .unit = "steps",
       .range = at_least(1),
       .tutorials = kVitTutorials,
       .is_flag = true,
       .flag_tutorials = kVitTutorials,
       .free = true,
       .common = Common::Training},
  };
}

std::vector<Key> run_keys() {
  return {
      {.flat = "seed",
       .path = "loop.seed",
       .field = kLoop<&L::seed>,
       .summary = "of the initial weights, the order, augmentation and dropout",
       .is_flag = true,
       .common = Common::Training},
      {.flat = "deterministic",
       .path = "loop.deterministic",
       .field = kLoop<&L::deterministic>,
       .summary = "the same bits run to run, at some cost in speed",
       .is_flag = true},
      {.flat = "checkpoint_interval",
       .path = "loop.checkpoint_interval",
       .field = kLoop<&L::checkpoint_interval>,
       .summary = "steps between checkpoints; 0 = only at the end and on a signal",
       .unit = "steps",
       .range = at_least(0),
       .is_flag = true,
       .free = true,
       .common = Common::Training},
      {.flat = "keep_checkpoints",
       .path = "loop.keep_checkpoints",
       .field = kLoop<&L::keep_checkpoints>,
       .summary = "newest checkpoints that stay on disk; the best one stays besides",
       .range = at_least(1),
       .is_flag = true,
       .free = true},
      {.flat = "best_metric",
       .path = "loop.best_metric",
       .field = kLoop<&L::best_metric>,
       .summary = "metric of the validation whose smallest value marks the best checkpoint: val_loss or val_rmse_<channel>",
       .is_flag = true,
       .free = true},
      {.flat = "early_stopping",
       .path = "loop.early_stopping",
       .field = kLoop<&L::early_stopping>,
       .summary = "metric, patience, and optionally the least improvement that counts: the run ends after so many validations "
                  "without improvement",
       .is_flag = true,
       .free = true},
      {.flat = "resume",
       .path = "loop.resume",
       .field = kLoop<&L::resume>,
       .summary = "continue from the newest good checkpoint of the run folder",
       .is_flag = true,
       .free = true,
       .common = Common::Training},
      {.flat = "resume_optimizer",
       .path = "loop.resume_optimizer",
       .field = kLoop<&L::resume_optimizer>,
       .summary = "with resume, after a change of the optimizer: same (its states must be the run's), fitting (those of equal "
                  "name, shape "
                  "and type are kept) or none (all begin anew)",
       .is_flag = true,
       .free = true},
      {.flat = "on_nonfinite",
       .path = "loop.on_nonfinite",
       .field = kLoop<&L::on_nonfinite>,
       .summary = "action on NaN or Inf in loss or gradient; fp16 overflow only lowers the loss scale",
       .null_is_first = true,
       .is_flag = true,
       .free = true},
      {.flat = "compat",
       .path = "loop.compat",
       .field = kLoop<&L::compat>,
       .summary =
           "follow that tutorial's old schedule, augmentation and rules, defects included (docs/reference/defects.md); wrong "
           "gradients stay fixed",
       .is_flag = true,
       .pinned = true},
      {.flat = "device",
       .path = "loop.device",
       .field = kLoop<&L::device>,
       .summary = "where to compute; auto = a GPU where there is one",
       .is_flag = true,
       .free = true,
       .common = Common::EveryVerb},
      {.flat = "threads",
       .path = "loop.threads",
       .field = kLoop<&L::threads>,
       .summary = "threads of a CPU operator; 0 = the cores of this process",
       .unit = "threads",
       .range = between(0, 4096),
       .is_flag = true,
       .free = true,
       .common = Common::EveryVerb},
  };
}

std::vector<Key> output_keys() {
  return {
      {.flat = "expdir",
       .path = "output.expdir",
       .field = kOutput<&O::expdir>,
       .summary = "root of the run folders",
       .tutorials = kAllTutorials,
       .free = true,
       .root = "logs",
       .common = Common::Training},
      {.flat = "log_root",
       .path = "output.log_root",
       .field = kOutput<&O::log_root>,
       .summary = "folder that the prefix /logs of expdir stands for",
       .is_flag = true,
       .free = true,
       .is_folder = true,
       .common = Common::EveryVerb},
      {.flat = "run_num",
       .path = "output.run_num",
       .field = kOutput<&O::run_num>,
       .summary = "last folder of the run",
       .is_flag = true,
       .flag_tutorials = kAllTutorials,
       .free = true,
       .common = Common::Training},
      {.flat = "folder_rule",
       .path = "output.folder_rule",
       .field = kOutput<&O::folder_rule>,
       .summary = "gpu: folder <world size>GPU, mp: <ranks of one model>MP; auto = mp where a model-parallel key is given",
       .free = true},
      {.flat = "log_every_n_steps",
       .path = "output.log_every_n_steps",
       .field = kOutput<&O::log_every_n_steps>,
       .summary = "steps between log lines of loss, learning rate and remaining time; 0 = none",
       .unit = "steps",
       .range = at_least(0),
       .is_flag = true,
       .free = true},
      {.flat = "csv",
       .path = "output.csv",
       .field = kOutput<&O::csv>,
       .summary = "also write what goes to TensorBoard as a table, metrics.csv in the run folder",
       .is_flag = true,
       .free = true},
  };
}

}  // namespace

std::vector<Key> loop_keys() {
  std::vector<Key> rows = batch_keys();
  for (const auto& more : {run_keys(), output_keys()}) rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace welkin::config
