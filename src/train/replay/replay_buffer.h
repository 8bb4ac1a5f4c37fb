// SPDX-License-Identifier: Apache-2.0
// The states of a replay buffer (data/sample/replay_plan.h decides which are used when): the model's predictions as the inputs
// of later steps. They lie in the host's memory, page-locked if there is a GPU. Copies are ordered with the device's work, so
// the host waits for nothing. In a pipeline the ranks whose stages read the model's input have them, and the last rank, which
// makes them and sends them to the others at the end of a step.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "data/pipeline/pipeline.h"
#include "data/sample/replay_plan.h"
#include "parallel/comm/group.h"
#include "train/learn/sample_shard.h"
#include "train/rollout/state_feed.h"

namespace welkin::train {

// The lanes (places of the batch) of a rank.
struct ReplayLanes {
  int64_t first = 0, count = 1;
};

// The ranks of a pipeline, and those of them, in order, whose stages read the model's input. Empty for one rank.
struct ReplayStages {
  parallel::Group ranks{};
  std::vector<int64_t> readers{};
};

class ReplayBuffer {
 public:
  // `dataset` outlives it. `shard` is the part of each sample and state that this rank has. ConfigError of StateFeed, if a
  // prediction does not determine the whole next input.
  ReplayBuffer(const data::Dataset& dataset, data::ReplayPlan plan, const config::RunConfig& config, ReplayLanes lanes,
               SampleShard shard, c10::Device device, ReplayStages stages = {});

  const data::ReplayPlan& plan() const { return plan_; }
  const ReplayLanes& lanes() const { return lanes_; }
  c10::Device device() const { return device_; }
  int64_t bytes() const { return static_cast<int64_t>(states_.nbytes()); }
  bool holds_states() const { return makes_states() || reads_states(); }  // else states() and samples() have no slots

  // Replaces inputs by states as the plan says, in the batch's memory. If a state is missing (the run was resumed without it,
  // the sample was skipped), the input of the data stays.
  void feed(const data::Batch& batch);
  // Keeps the model's prediction of a batch, (B, C', ...), as the input of the samples that follow. If it is not finite,
  // the rollout goes on from the truth. Every rank that shares the samples calls it; in a pipeline the ranks of the last
  // stage.
  void keep(const data::Batch& batch, const at::Tensor& prediction);
  // Ends a step. In a pipeline every rank calls it, and the last rank's new states are sent to the ranks that need them.
  // CommError when a rank does not take part.
  void end_step();

  const SampleShard& shard() const { return shard_; }
  // The shape (C, ...) of a whole input of the data set.
  const std::vector<int64_t>& whole_shape() const { return dataset_.spec().input.shape; }
  // (slots, lanes, C, points that are read) float32, and (slots, lanes) int64: the sample whose input each state is, or -1.
  // Both in the host's memory. `sync` waits for copies that are under way.
  const at::Tensor& states() const { return states_; }
  const at::Tensor& samples() const { return samples_; }
  void sync() const;
  void clear() const;

 private:
  // The slot and lane of a sample's state, and the sample whose input it becomes.
  struct Place {
    int64_t slot = 0, lane = 0, following = -1;  // lane: of this rank
  };
  bool is_in_pipeline() const { return stages_.ranks.size() > 1; }
  bool makes_states() const { return stages_.ranks.group_rank() + 1 == stages_.ranks.size(); }
  bool reads_states() const;
  std::vector<int64_t> shape_of(std::vector<int64_t> places) const;
  int64_t lane_of(const data::Batch& batch, int64_t sample) const;
  Place place_of(const data::Batch& batch, int64_t sample) const;
  void store(const Place& place, const at::Tensor& state);
  void send_states();
  void receive_states();
  data::ReplayChoice choice(const data::Batch& batch, int64_t sample) const;
  at::Tensor state_of(const data::Batch& batch, int64_t sample) const;
  int64_t& holder(int64_t slot, int64_t lane) const;

  const data::Dataset& dataset_;
  data::ReplayPlan plan_;
  StateFeed feed_;
  ReplayLanes lanes_;
  SampleShard shard_;
  c10::Device device_;
  ReplayStages stages_;
  at::Tensor states_, samples_;
  at::Tensor made_;             // on a pipeline's last rank: (lanes, C, ...) on the device, the states of this step
  std::vector<Place> awaited_;  // on a pipeline's other readers: the places of those states
};

}  // namespace welkin::train
