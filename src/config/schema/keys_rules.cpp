// SPDX-License-Identifier: Apache-2.0
// Rows of the components `rules` and `backend`.
#include "config/schema/key.h"

namespace welkin::config {
namespace {

template <auto... Members>
constexpr auto kRules = &member<&RunConfig::rules, Members...>;
template <auto... Members>
constexpr auto kBackend = &member<&RunConfig::backend, Members...>;

using R = RuleConfig;
using B = BackendConfig;

}  // namespace

std::vector<Key> rule_keys() {
  return {
      {.flat = "crop_rule",
       .path = "rules.crop_rule",
       .field = kRules<&R::crop_rule>,
       .summary = "inclusive: crops start at 0 ... L - data_size and wrap around a periodic box; exclusive: the last start is "
                  "never drawn, no wrapping (SC21, SC22)",
       .scope = Scope::Boxes,
       .pinned = true},
      {.flat = "pair_rule",
       .path = "rules.pair_rule",
       .field = kRules<&R::pair_rule>,
       .summary = "each_file: every pair of every year once; first_file: the first year's length for all, some pairs twice and "
                  "some never (SC23, DL4SCI25)",
       .scope = Scope::Fields,
       .pinned = true},
      {.flat = "validation_rule",
       .path = "rules.validation_rule",
       .field = kRules<&R::validation_rule>,
       .summary = "every_sample: each once, unaugmented; drawn: new random crops and turns each time, mean over batches (SC21, "
                  "SC22); full_batches: the last short batch is dropped, mean over batches (SC23, DL4SCI25)",
       .pinned = true},
      {.flat = "shard_rule",
       .path = "rules.shard_rule",
       .field = kRules<&R::shard_rule>,
       .summary = "samples of an epoch over R data-parallel ranks: exact; padded: repeated up to a multiple of R (the tutorials' "
                  "PyTorch loaders); truncated: cut down to one (their DALI loaders)",
       .pinned = true},
      {.flat = "length_rule",
       .path = "rules.length_rule",
       .field = kRules<&R::length_rule>,
       .summary = "exact: num_iters steps; whole_epochs: as many whole epochs as fit into num_iters (SC23, DL4SCI25)",
       .pinned = true},
      {.flat = "rate_rule",
       .path = "rules.rate_rule",
       .field = kRules<&R::rate_rule>,
       .summary = "what the schedule counts: applied updates, or all iterations, skipped ones too (the tutorials)",
       .pinned = true},
      {.flat = "first_batch_rule",
       .path = "rules.first_batch_rule",
       .field = kRules<&R::first_batch_rule>,
       .summary = "kept: the initial losses leave the epoch whole; consumed: the first epoch trains and validates one batch less "
                  "(the tutorials' DALI loaders)",
       .pinned = true},
  };
}

std::vector<Key> backend_keys() {
  return {
      {.flat = "tf32",
       .path = "backend.tf32",
       .field = kBackend<&B::tf32>,
       .summary = "TF32 units for fp32 matmuls in cuBLAS and cuDNN; NVIDIA_TF32_OVERRIDE=0 in the environment turns them off in "
                  "any case",
       .is_flag = true},
      {.flat = "cudnn_enabled",
       .path = "backend.cudnn_enabled",
       .field = kBackend<&B::cudnn_enabled>,
       .summary = "use cuDNN, or torch's own kernels",
       .is_flag = true},
      {.flat = "cudnn_benchmark",
       .path = "backend.cudnn_benchmark",
       .field = kBackend<&B::cudnn_benchmark>,
       .summary = "cuDNN measures its algorithms for each shape and takes the fastest; off if deterministic",
       .is_flag = true},
      {.flat = "cudnn_deterministic",
       .path = "backend.cudnn_deterministic",
       .field = kBackend<&B::cudnn_deterministic>,
       .summary = "only bitwise reproducible algorithms of cuDNN; on if deterministic",
       .is_flag = true},
      {.flat = "gemm",
       .path = "backend.gemm",
       .field = kBackend<&B::gemm>,
       .summary = "library for float32 GEMM on a CPU; auto = onednn on AMD processors, mkl elsewhere",
       .is_flag = true,
       .free = true},
      {.flat = "float32_matmul_precision",
       .path = "backend.float32_matmul_precision",
       .field = kBackend<&B::float32_matmul_precision>,
       .summary =
           "PyTorch's torch.set_float32_matmul_precision on a CPU: with AMX, float32 matmuls of linear layers and attention take "
           "operands as sums of two bfloat16 (high, 16 bits) or rounded to one (medium, 8 bits); sums stay float32",
       .is_flag = true},
      {.flat = "instruction_set",
       .path = "backend.instruction_set",
       .field = kBackend<&B::instruction_set>,
       .summary = "vector instructions of our CPU kernels; auto = the best of the processor",
       .is_flag = true,
       .free = true},
      {.flat = "memory_limit_gib",
       .path = "backend.memory_limit_gib",
       .field = kBackend<&B::memory_limit_gib>,
       .summary = "limit on the memory of this process's tensors, on the device that computes; 0 = none",
       .unit = "GiB",
       .range = between(0, 1 << 20),
       .is_flag = true,
       .free = true},
      {.flat = "offload",
       .path = "backend.offload",
       .field = kBackend<&B::offload>,
       .summary = "what a rank keeps outside of its device's memory: optimizer: states of the optimizer and the moving average "
                  "of weights; activations: values saved for the backward pass; parameters: the weights (docs/guide/training.md)",
       .choices = "optimizer|activations|parameters",
       .is_flag = true,
       .free = true},
      {.flat = "offload_path",
       .path = "backend.offload_path",
       .field = kBackend<&B::offload_path>,
       .summary = "folder on a local disk for offloaded values, one unnamed file for each rank and kind; without it a run on a "
                  "GPU uses host memory, and a run on a CPU is refused",
       .is_flag = true,
       .free = true,
       .is_folder = true},
      {.flat = "offload_buffer_mib",
       .path = "backend.offload_buffer_mib",
       .field = kBackend<&B::offload_buffer_mib>,
       .summary = "size of each of the three host buffers that stream one kind of offloaded state",
       .unit = "MiB",
       .range = between(0.01, 1 << 14),
       .is_flag = true,
       .free = true},
      {.flat = "cuda_graph",
       .path = "backend.cuda_graph",
       .field = kBackend<&B::cuda_graph>,
       .summary = "record the whole step once and replay it as a CUDA graph, with the same result (the tutorials' "
                  "train_graph.py); an error without a GPU",
       .is_flag = true,
       .free = true},
      {.flat = "channels_last",
       .path = "backend.channels_last",
       .field = kBackend<&B::channels_last>,
       .summary =
           "channels-last format of images, boxes and weights of convolutions on a GPU; on for unet3d; a CPU has its own layout",
       .is_flag = true,
       .free = true},
      {.flat = "attention",
       .path = "backend.attention",
       .field = kBackend<&B::attention>,
       .summary = "attention kernel of torch on a GPU; auto = the fastest, measured at the start with the model's heads",
       .is_flag = true,
       .free = true},
  };
}

}  // namespace welkin::config
