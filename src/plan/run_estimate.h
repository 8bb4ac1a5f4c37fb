// SPDX-License-Identifier: Apache-2.0
// Estimates FLOPs, memory and time of a run before it starts: arithmetic on the configuration and the model's cost. It depends
// on no machine: the caller gives the speed of a device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "model/base/memory_cost.h"
#include "model/base/model_cost.h"
#include "plan/link_model.h"

namespace welkin::plan {

// A pipeline rank's share of the whole model.
struct StageFacts {
  double parameters = 1, trained = 1, flops = 1;  // fractions of the whole model
  double held = 1;                                // micro-batches, each of one model step, whose activations it holds
  double inputs_held = 0;                         // micro-batches of which it holds only a pass's input, and runs it again
  double tied = 0;  // values that it sends in a step for parameters with copies on other ranks: 2 (h - 1)/h of each, h ranks
};

// Calls of one collective by the model itself, in the passes of one sample (parallel/plans/plan_traffic.h).
struct CollectiveFacts {
  std::string group;  // "tp"
  CollectiveKind kind = CollectiveKind::AllReduce;
  int64_t ranks = 1;
  bool leaves_node = false;  // the group has ranks of several nodes
  double calls = 0, values = 0;
  bool is_wide = false;    // in float32 also under mixed precision
  bool is_beside = false;  // the computation goes on meanwhile
};

struct RunFacts {
  model::ModelCost cost{};
  std::optional<model::MemoryCost> memory{};   // nothing: the model's memory is not known
  int64_t sample_values = 0;                   // input and target together
  int64_t input_values = 0;                    // the part of these that is the input of one model step
  int64_t step_values = 0;                     // further values for every further model step: targets, and known inputs
  std::optional<int64_t> samples_per_epoch{};  // nothing if only the files determine it
  double optimizer_states = 2;                 // float32 values for each trained weight
  int64_t frozen_parameters = 0;               // part of cost.parameters; they have no gradient
  bool widens_matmuls = false;                 // a CPU that makes 16-bit matmuls in float32
  int64_t world_size = 1;
  std::optional<double> flops_per_second{};  // achieved by each rank's device
  std::vector<StageFacts> stages{};          // by rank of the pipeline; empty: there is none
  std::vector<CollectiveFacts> collectives{};
  double message_values = 0;          // of a sample, from stage to stage
  bool exchange_leaves_node = false;  // replicas, and stages, are on several nodes
  bool stages_leave_node = false;
  double idle = 0;  // fraction of the ranks' time in which they wait for others
};

// In a step, of one rank.
struct CollectiveTraffic {
  std::string group;
  CollectiveKind kind = CollectiveKind::AllReduce;
  int64_t ranks = 1;
  bool leaves_node = false;
  double calls = 0;
  double bytes = 0;  // of this rank's tensors; of gathers the whole
  bool is_beside = false;
};

struct MemoryPart {
  std::string name;
  double bytes = 0;
};

struct RunEstimate {
  model::ModelCost cost{};
  int64_t world_size = 1, tensor_parallel = 1, context_parallel = 1, pipeline_parallel = 1;
  int64_t blocks = 1;  // of a sample, one per rank
  int64_t stage = 0;   // of the pipeline: the rank that needs the most memory, which is shown
  int64_t global_batch = 0;
  int64_t forward_batch = 0;         // samples of one forward pass of a rank
  bool shares_state = false;         // key `shard`: the memory is that of a moment of the backward pass
  std::optional<int64_t> samples{};  // of the whole run; nothing if only the files determine it
  double step_flops = 0;             // of all ranks together
  int64_t model_steps = 1;           // model steps that a sample is trained for, in the part of the run with most of them
  int64_t ensemble_members = 1;      // ensemble members that a step makes from a sample
  double run_share = 1;              // FLOPs of the run, over those of a run with most model steps throughout
  double recompute_flops = 0;        // per step, of forward passes repeated by activation checkpointing
  double reduced_bytes = 0;          // that each rank sends per step for gradients, and for sharded weights: a ring's
                                     // (n - 1)/n of each transfer; in a pipeline of the rank that sends most, with its part of
                                     // the sums of tied weights, which are taken to be whole on ranks of tp
  std::vector<CollectiveTraffic> collectives{};  // of the model's own passes
  double idle = 0;                               // RunFacts::idle
  int64_t micro_batches = 1;
  bool exchanges_each_pass = false;  // weights or gradients travel for every micro-batch
  double bucket_bytes = 0;           // of gradients that leave together
  double message_bytes = 0;          // of a micro-batch, from stage to stage
  bool exchange_leaves_node = false, stages_leave_node = false;
  double replay_bytes = 0;     // one rank's replay buffer in the host's memory
  double offloaded_bytes = 0;  // bytes of one rank that leave its device's memory (key `offload`)
  double disk_bytes = 0;       // bytes that one rank reads and writes for them in a step; 0 if they are in host memory
  // Memory of one rank as the backward pass begins, with one recomputed part. With sharded training state: at the peak of the
  // backward pass. Without activations if they are not known.
  std::vector<MemoryPart> memory{};
  std::optional<double> step_seconds{}, run_seconds{};

  double memory_bytes() const;
  // Quantities that grow with the run's length; nothing if that is not known.
  std::optional<double> run_flops() const;
  std::optional<double> device_hours() const;
};

RunEstimate estimate_run(const config::RunConfig& config, const RunFacts& facts);

}  // namespace welkin::plan
