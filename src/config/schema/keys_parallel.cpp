// SPDX-License-Identifier: Apache-2.0
// Rows of the components `switches` and `parallel`.
#include "config/schema/key.h"

namespace welkin::config {
namespace {

template <auto... Members>
constexpr auto kSwitches = &member<&RunConfig::switches, Members...>;
template <auto... Members>
constexpr auto kParallel = &member<&RunConfig::parallel, Members...>;

using S = SwitchConfig;
using P = ParallelConfig;

std::vector<Key> switch_keys() {
  return {
      {.flat = "enable_jit",
       .path = "switches.enable_jit",
       .field = kSwitches<&S::enable_jit>,
       .summary = "the tutorials' scripting or compiling, a hint (docs/reference/switches.md)",
       .tutorials = kAllTutorials,
       .is_flag = true,
       .flag_tutorials = kAllTutorials},
      {.flat = "enable_apex",
       .path = "switches.enable_apex",
       .field = kSwitches<&S::enable_apex>,
       .summary = "the tutorials' APEX optimizer, a hint",
       .tutorials = kUnetTutorials | kSc23,
       .is_flag = true,
       .flag_tutorials = kUnetTutorials},
      {.flat = "enable_fused",
       .path = "switches.enable_fused",
       .field = kSwitches<&S::enable_fused>,
       .summary = "the tutorials' fused Adam, a hint",
       .tutorials = kSc23,
       .is_flag = true,
       .flag_tutorials = kSc23},
      {.flat = "enable_benchy",
       .path = "switches.enable_benchy",
       .field = kSwitches<&S::enable_benchy>,
       .summary = "measure instead of training, as the tutorials' benchy: IO, SYNTHETIC, FULL",
       .tutorials = kUnetTutorials,
       .is_flag = true,
       .flag_tutorials = kUnetTutorials},
      {.flat = "enable_manual_profiling",
       .path = "switches.enable_manual_profiling",
       .field = kSwitches<&S::enable_manual_profiling>,
       .summary = "the tutorials' profiler ranges and window (docs/guide/profiling.md); not with enable_benchy",
       .is_flag = true,
       .flag_tutorials = kUnetTutorials,
       .free = true},
  };
}

std::vector<Key> mesh_keys() {
  return {
      {.flat = "tensor_parallel",
       .path = "parallel.tensor_parallel",
       .field = kParallel<&P::tensor_parallel>,
       .summary = "ranks that share the weights of a layer (tp)",
       .unit = "ranks",
       .range = between(1, 1 << 20),
       .is_flag = true,
       .flag_tutorials = kDl25,
       .free = true,
       .common = Common::Steps},
      {.flat = "context_parallel",
       .path = "parallel.context_parallel",
       .field = kParallel<&P::context_parallel>,
       .summary = "ranks that share the tokens of a sample (cp)",
       .unit = "ranks",
       .range = between(1, 1 << 20),
       .is_flag = true,
       .flag_tutorials = kDl25,
       .free = true,
       .common = Common::Steps},
      {.flat = "spatial",
       .path = "parallel.spatial",
       .field = kParallel<&P::spatial>,
       .summary = "ranks along depth, height and width of a sample, DxHxW: each reads, computes and scores a block of it "
                  "(docs/guide/parallelism.md)",
       .unit = "ranks",
       .is_flag = true,
       .free = true},
      {.flat = "row_parallel_size",
       .path = "parallel.row_parallel_size",
       .field = kParallel<&P::row_parallel_size>,
       .summary = "SC23's name for tensor_parallel",
       .unit = "ranks",
       .range = between(1, 1 << 20),
       .is_flag = true,
       .flag_tutorials = kSc23,
       .free = true},
      {.flat = "col_parallel_size",
       .path = "parallel.col_parallel_size",
       .field = kParallel<&P::col_parallel_size>,
       .summary = "must be 1, as in SC23",
       .unit = "ranks",
       .range = between(1, 1),
       .is_flag = true,
       .flag_tutorials = kSc23,
       .free = true},
      {.flat = "parallel_order",
       .path = "parallel.parallel_order",
       .field = kParallel<&P::parallel_order>,
       .summary = "order of the mesh axes over the ranks, left = fastest",
       .is_flag = true,
       .flag_tutorials = kDl25,
       .free = true},
      {.flat = "sequence_parallel",
       .path = "parallel.sequence_parallel",
       .field = kParallel<&P::sequence_parallel>,
       .summary =
           "norms, dropout and residuals also work on tokens split over the tensor-parallel ranks (docs/guide/parallelism.md)",
       .is_flag = true,
       .free = true},
      {.flat = "context_mode",
       .path = "parallel.context_mode",
       .field = kParallel<&P::context_mode>,
       .summary = "how attention gets the tokens of other context-parallel ranks (docs/guide/parallelism.md)",
       .is_flag = true,
       .free = true},
      {.flat = "context_io",
       .path = "parallel.context_io",
       .field = kParallel<&P::context_io>,
       .summary = "what context-parallel ranks read, embed and score: sharded: their own tokens; gathered: all, as in DL4SCI25",
       .is_flag = true,
       .free = true},
      {.flat = "replica_check_interval",
       .path = "parallel.replica_check_interval",
       .field = kParallel<&P::replica_check_interval>,
       .summary = "steps between hash checks that replicas are equal; 0: only at the start and before checkpoints",
       .unit = "steps",
       .range = between(0, int64_t{1} << 40),
       .is_flag = true,
       .free = true},
  };
}

std::vector<Key> pipeline_keys() {
  return {
      {.flat = "pipeline_parallel",
       .path = "parallel.pipeline_parallel",
       .field = kParallel<&P::pipeline_parallel>,
       .summary = "ranks that hold successive blocks of the model and pass micro-batches on (pp) (docs/guide/parallelism.md)",
       .unit = "ranks",
       .range = between(1, 1 << 10),
       .is_flag = true,
       .free = true},
      {.flat = "pipeline_schedule",
       .path = "parallel.pipeline_schedule",
       .field = kParallel<&P::pipeline_schedule>,
       .summary = "order of a pipeline's passes (welkin plan schedule draws it)",
       .is_flag = true,
       .free = true},
      {.flat = "pipeline_chunks",
       .path = "parallel.pipeline_chunks",
       .field = kParallel<&P::pipeline_chunks>,
       .summary = "model chunks per rank of an interleaved pipeline; 0: two for interleaved, else one",
       .range = between(0, 1 << 8),
       .is_flag = true,
       .free = true},
      {.flat = "pipeline_split",
       .path = "parallel.pipeline_split",
       .field = kParallel<&P::pipeline_split>,
       .summary = "blocks of each pipeline stage, from 0: 0-3,4-7; empty: balanced by cost",
       .is_flag = true,
       .free = true},
  };
}

std::vector<Key> shard_keys() {
  return {
      {.flat = "shard",
       .path = "parallel.shard",
       .field = kParallel<&P::shard>,
       .summary = "what is sharded over data-parallel ranks: optimizer: the optimizer's states (ZeRO 1); gradients: those too "
                  "(ZeRO 2); full: weights too (ZeRO 3, FSDP) (docs/guide/parallelism.md)",
       .is_flag = true,
       .free = true},
      {.flat = "shard_group",
       .path = "parallel.shard_group",
       .field = kParallel<&P::shard_group>,
       .summary = "data-parallel ranks that share one training state: all, those of a node, or a number that divides them; the "
                  "groups are replicas of each other",
       .is_flag = true,
       .free = true},
      {.flat = "reshard_after_forward",
       .path = "parallel.reshard_after_forward",
       .field = kParallel<&P::reshard_after_forward>,
       .summary = "with shard full: free a block's weights after its forward pass and gather them again for the backward pass",
       .free = true},
      {.flat = "shard_prefetch",
       .path = "parallel.shard_prefetch",
       .field = kParallel<&P::shard_prefetch>,
       .summary = "with shard: blocks whose weights are gathered ahead, during computation",
       .unit = "blocks",
       .range = between(0, 1 << 10),
       .is_flag = true,
       .free = true},
      {.flat = "shard_gather_dtype",
       .path = "parallel.shard_gather_dtype",
       .field = kParallel<&P::shard_gather_dtype>,
       .summary = "with shard: type in which weights of matmuls and convolutions are gathered; bf16 halves the bytes, and "
                  "changes nothing with amp_mode bf16 (docs/guide/parallelism.md)",
       .is_flag = true},
  };
}

std::vector<Key> replica_keys() {
  return {
      {.flat = "noddp",
       .path = "parallel.noddp",
       .field = kParallel<&P::noddp>,
       .summary = "no gradient exchange between data-parallel ranks: for measuring only",
       .is_flag = true,
       .flag_tutorials = kSc21 | kSc22 | kSc23},
      {.flat = "disable_broadcast_buffers",
       .path = "parallel.disable_broadcast_buffers",
       .field = kParallel<&P::disable_broadcast_buffers>,
       .summary = "accumulate gradients of several micro-batches in the buckets, which saves memory; buffers (there are none) "
                  "are not broadcast",
       .is_flag = true,
       .flag_tutorials = kSc21 | kSc22 | kSc23,
       .free = true},
      {.flat = "bucket_cap_mb",
       .path = "parallel.bucket_cap_mb",
       .field = kParallel<&P::bucket_cap_mb>,
       .summary = "size of a gradient bucket",
       .unit = "MB",
       .range = between(1, 1 << 20),
       .is_flag = true,
       .flag_tutorials = kSc21 | kSc22 | kSc23,
       .free = true},
      {.flat = "wireup_info",
       .path = "parallel.wireup_info",
       .field = kParallel<&P::wireup_info>,
       .summary = "SC23's source of rank and size; here they are detected",
       .tutorials = kVitTutorials,
       .inert = true,
       .free = true},
      {.flat = "wireup_store",
       .path = "parallel.wireup_store",
       .field = kParallel<&P::wireup_store>,
       .summary = "how the ranks find each other: tcp at MASTER_ADDR and MASTER_PORT, or the file WIREUP_FILE_PATH; none: as tcp",
       .tutorials = kVitTutorials,
       .free = true},
      {.flat = "compress_gradients",
       .path = "parallel.compress_gradients",
       .field = kParallel<&P::compress_gradients>,
       .summary = "type of the gradient all-reduce between replicas; gradients are computed and kept in fp32",
       .is_flag = true},
      {.flat = "static_graph",
       .path = "parallel.static_graph",
       .field = kParallel<&P::static_graph>,
       .summary = "every step uses the same parameters in the same order, so the gradient exchange may rely on it",
       .is_flag = true,
       .free = true},
      {.flat = "rank_invariant",
       .path = "parallel.rank_invariant",
       .field = kParallel<&P::rank_invariant>,
       .summary = "same bits on 1, 2, 4 and 8 data-parallel ranks with equal threads: gradients of eighths of the batch are "
                  "summed in a fixed tree, without overlap",
       .is_flag = true},
      {.flat = "comm_timeout_s",
       .path = "parallel.comm_timeout_s",
       .field = kParallel<&P::comm_timeout_s>,
       .summary = "time that a rank waits for the others, at the start and in a collective, before all stop with an error",
       .unit = "s",
       .range = between(1, 1 << 20),
       .is_flag = true,
       .free = true},
  };
}

}  // namespace

std::vector<Key> parallel_keys() {
  std::vector<Key> rows = switch_keys();
  for (const auto& more : {mesh_keys(), pipeline_keys(), shard_keys(), replica_keys()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace welkin::config
