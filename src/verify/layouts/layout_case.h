// SPDX-License-Identifier: Apache-2.0
// The layouts that `welkin verify --layouts` compares with one process, and the options of its small problem.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "parallel/mesh/mesh.h"
#include "parallel/plans/vit.h"
#include "parallel/shard/gradient_exchange.h"

namespace welkin::verify {

struct LayoutCase {
  parallel::MeshSizes sizes;
  std::string order = "tp-cp-dp";
  parallel::LayoutOptions options = {};
  bool joint_qkv = false;
  int64_t num_micro = 1;  // micro-batches whose gradients add up
  double dropout = 0.0;
  parallel::GradientDtype comm_dtype = parallel::GradientDtype::Same;  // of gradients between replicas
  config::ShardStage shard = config::ShardStage::None;                 // the training state that data-parallel ranks share out
  int64_t shard_replicas = 1;                                          // groups of ranks that each have a whole training state
  config::PipelineSchedule schedule = config::PipelineSchedule::OneForwardOneBackward;
  int64_t depth = 2;     // blocks, if the model has such
  int64_t batch = 8;     // samples of a step over all ranks
  bool weights = false;  // points without a value, weights of channels and rows
  int64_t steps = 1;     // of the model, each fed with the prediction before it
  int64_t members = 1;   // predictions of a sample, which differ by noise on the input

  // The number of ranks in one exchange of gradients.
  int64_t exchange_size() const { return sizes.dp_replicate * (splits_input_over_cp() ? sizes.cp : 1) * num_blocks(); }
  bool splits_input_over_cp() const { return options.sharded_io || num_blocks() > 1; }
  int64_t num_blocks() const { return sizes.d * sizes.h * sizes.w; }
  parallel::Mesh mesh() const;
  int64_t chunks() const { return schedule == config::PipelineSchedule::Interleaved ? 2 : 1; }

  // "dp 2, tp 2, cp 2 (tp-cp-dp), sequence parallel, all_gather, sharded, joint qkv, 2 micro-batches, dropout 0.1, shard full"
  std::string text() const;
};

enum class LayoutChoice {
  Some,   // every mesh once, the other options spread over them: for tests
  Pairs,  // every mesh, and all pairs of the axes' sizes and options; on two ranks all pairs of options on each mesh
  All,    // the full product
};

// A checkpoint that one layout writes and another continues from, on the same problem.
struct LayoutMove {
  LayoutCase before, after;
};

// All layouts for `world_size` ranks, with meshes of the axes over which a plan can split a model (and dp), and pp if a model
// has segments. Pairs are not left to layouts that `is_refused` names, if it is given. Deterministic.
std::vector<LayoutCase> layout_cases(int64_t world_size, LayoutChoice choice,
                                     parallel::AxisSet axes = parallel::Axis::Tp | parallel::Axis::Cp,
                                     const std::function<bool(const LayoutCase&)>& is_refused = {});

// `count` other layouts (or as many as there are), drawn from the product of meshes, options and pipeline schedules. They are
// determined by the seed alone.
std::vector<LayoutCase> sampled_cases(int64_t world_size, int64_t count, uint64_t seed, parallel::AxisSet axes,
                                      const std::vector<LayoutCase>& known);

// Moves from the first case of each mesh to that of the next one, and from the last one's to the first one's.
std::vector<LayoutMove> layout_moves(const std::vector<LayoutCase>& cases);

}  // namespace welkin::verify
