// SPDX-License-Identifier: Apache-2.0
// FLOPs, memory and time of a run of ours before it starts: arithmetic on the configuration and the model's cost. It knows no
// machine: how fast a device is, the caller says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "model/base/memory_cost.h"
#include "model/base/model_cost.h"

namespace welkin::plan {

// What one rank of a pipeline has of the whole model.
struct StageFacts {
  double parameters = 1, trained = 1, flops = 1;  // shares
  double held = 1;                                // micro-batches, each of one step of the model, whose activations it holds
  double inputs_held = 0;                         // and those of which it holds what a pass began with, and runs it again
  double tied = 0;  // values that it sends in a step for parameters of which other ranks have copies: 2 (h - 1)/h of each, of h
};

struct RunFacts {
  model::ModelCost cost{};
  std::optional<model::MemoryCost> memory{};   // nothing: nobody knows what the model keeps
  int64_t sample_values = 0;                   // of input and target together
  int64_t input_values = 0;                    // of these the input of one step of the model
  int64_t step_values = 0;                     // of the sample besides, for every further step: targets, what is known in advance
  std::optional<int64_t> samples_per_epoch{};  // nothing where only the files know
  double optimizer_states = 2;                 // float32 values for each weight that is trained
  int64_t frozen_parameters = 0;               // of cost.parameters: they have no gradient
  bool widens_matmuls = false;                 // a CPU on which matmuls of 16 bits are made in float32
  int64_t world_size = 1;
  std::optional<double> flops_per_second{};  // achieved by each rank's device
  std::vector<StageFacts> stages{};          // by rank of the pipeline; empty: there is none
  double idle = 0;                           // share of the ranks' time in which they wait for others
};

struct MemoryPart {
  std::string name;
  double bytes = 0;
};

struct RunEstimate {
  model::ModelCost cost{};
  int64_t world_size = 1, tensor_parallel = 1, context_parallel = 1, pipeline_parallel = 1;
  int64_t blocks = 1;  // of a sample, one on each of so many ranks
  int64_t stage = 0;   // of the pipeline, the rank whose memory this is: it needs the most
  int64_t global_batch = 0;
  int64_t forward_batch = 0;         // samples of one forward pass of a rank
  bool shares_state = false;         // key `shard`: the memory is that of a moment of the backward pass
  std::optional<int64_t> samples{};  // of the whole run; nothing where only the files know
  double step_flops = 0;             // of all ranks together
  int64_t model_steps = 1;           // of the model that a sample is trained for, in the part of the run with most
  int64_t ensemble_members = 1;      // that a step makes of a sample
  double run_share = 1;              // of what the run would take if all of it were that part
  double recompute_flops = 0;        // of forward passes that activation checkpointing makes again, of a step likewise
  double reduced_bytes = 0;          // that each rank sends per step for its gradients, and weights that are shared out: a ring's
                                     // (n - 1)/n of each transfer; of a pipeline the rank that sends most, its part of the
                                     // sums of tied weights with it, which are taken to be whole on ranks of tp
  double replay_bytes = 0;           // of one rank's replay buffer in the host's memory
  double offloaded_bytes = 0;        // of one rank, that leave the memory of its device (key `offload`)
  double disk_bytes = 0;             // that one rank reads and writes for them in a step; 0 where they are in the host's memory
  // Of one rank, as the backward pass begins, with a part that it runs again; where ranks share out the training state, at the
  // worst moment of the backward pass. Without activations where they are not known.
  std::vector<MemoryPart> memory{};
  std::optional<double> step_seconds{}, run_seconds{};

  double memory_bytes() const;
  // Of a quantity that grows with the run; nothing where its length is not known.
  std::optional<double> run_flops() const;
  std::optional<double> device_hours() const;
};

RunEstimate estimate_run(const config::RunConfig& config, const RunFacts& facts);

}  // namespace welkin::plan
