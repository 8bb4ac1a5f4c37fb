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
       .summary = "inclusive: crops start at 0 ... L - data_size, and wrap around a periodic box; exclusive: the last start is "
                  "never drawn, nothing wraps (SC21, SC22)",
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
       .summary = "what the schedule counts: updates that were applied, or iterations, skipped ones too (the tutorials)",
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
       .summary = "TF32 units for fp32 matmuls in cuBLAS and cuDNN; the environment's NVIDIA_TF32_OVERRIDE=0 turns them off "
                  "whatever this key says",
       .is_flag = true},
      {.flat = "cudnn_enabled",
       .path = "backend.cudnn_enabled",
       .field = kBackend<&B::cudnn_enabled>,
       .summary = "use cuDNN, or torch's own kernels",
       .is_flag = true},
      {.flat = "cudnn_benchmark",
       .path = "backend.cudnn_benchmark",
       .field = kBackend<&B::cudnn_benchmark>,
       .summary = "cuDNN measures its algorithms for each shape and takes the fastest; off where deterministic",
       .is_flag = true},
      {.flat = "cudnn_deterministic",
       .path = "backend.cudnn_deterministic",
       .field = kBackend<&B::cudnn_deterministic>,
       .summary = "only algorithms of cuDNN that repeat bit for bit; on where deterministic",
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
           "PyTorch's torch.set_float32_matmul_precision on a CPU: where the processor has AMX, float32 matmuls of linear "
           "layers and attention take operands as sums of two bfloat16 (high, 16 bits) or rounded to one (medium, 8 bits); "
           "sums stay float32",
       .is_flag = true},
      {.flat = "instruction_set",
       .path = "backend.instruction_set",
       .field = kBackend<&B::instruction_set>,
       .summary = "vector instructions of our CPU kernels; auto = the best that the processor has",
       .is_flag = true,
       .free = true},
      {.flat = "memory_limit_gib",
       .path = "backend.memory_limit_gib",
       .field = kBackend<&B::memory_limit_gib>,
       .summary = "limit on the memory of this process's tensors, on the device where it computes; 0 = none",
       .unit = "GiB",
       .range = between(0, 1 << 20),
       .is_flag = true,
       .free = true},
      {.flat = "offload",
       .path = "backend.offload",
       .field = kBackend<&B::offload>,
       .summary =
           "what a rank keeps outside of its device's memory: optimizer: states of the optimizer and the moving average of "
           "weights; activations: what blocks keep for the backward pass; parameters: the weights (docs/guide/training.md)",
       .choices = "optimizer|activations|parameters",
       .is_flag = true,
       .free = true},
      {.flat = "offload_path",
       .path = "backend.offload_path",
       .field = kBackend<&B::offload_path>,
       .summary =
           "folder on a local disk for what is offloaded, one unnamed file of each rank and kind; without it a GPU's run takes "
           "the host's memory, and a CPU's run is refused",
       .is_flag = true,
       .free = true,
       .is_folder = true},
      {.flat = "offload_buffer_mib",
       .path = "backend.offload_buffer_mib",
       .field = kBackend<&B::offload_buffer_mib>,
       .summary = "size of one of the three host buffers through which a kind of offloaded state comes and goes",
       .unit = "MiB",
       .range = between(0.01, 1 << 14),
       .is_flag = true,
       .free = true},
      {.flat = "cuda_graph",
       .path = "backend.cuda_graph",
       .field = kBackend<&B::cuda_graph>,
       .summary = "record the whole step once and replay it as a CUDA graph, with the same result (the tutorials' train_graph.py "
                  "programs); an error without a GPU",
       .is_flag = true,
       .free = true},
      {.flat = "channels_last",
       .path = "backend.channels_last",
       .field = kBackend<&B::channels_last>,
       .summary = "images, boxes and the weights of convolutions lie channels-last on a GPU; on for unet3d; a CPU has its own "
                  "layout",
       .is_flag = true,
       .free = true},
      {.flat = "attention",
       .path = "backend.attention",
       .field = kBackend<&B::attention>,
       .summary = "torch's form of attention on a GPU; auto = the fastest, measured at the start with the model's heads",
       .is_flag = true,
       .free = true},
  };
}

}  // namespace welkin::config
