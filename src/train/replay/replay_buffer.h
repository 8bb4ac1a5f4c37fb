// SPDX-License-Identifier: Apache-2.0
// The states of a replay buffer (data/sample/replay_plan.h says which are used when): the model's predictions as the inputs of
// later steps. They lie in the host's memory, page-locked beside a GPU. Copies go in the order of the device's work, so the host
// waits for nothing. Of a pipeline every rank has them whose stages look at the model's input, and the last one, which makes them
// and sends them to the others at the end of a step.
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

// The places of the batch that a rank has.
struct ReplayLanes {
  int64_t first = 0, count = 1;
};

// The ranks of a pipeline, and which of them, in their order, have stages that look at the model's input. Of one rank: none.
struct ReplayStages {
  parallel::Group ranks{};
  std::vector<int64_t> readers{};
};

class ReplayBuffer {
 public:
  // `dataset` outlives it. `shard`: what of each sample this rank reads, and has of each state. ConfigError of StateFeed, where a
  // prediction does not make the next input whole.
  ReplayBuffer(const data::Dataset& dataset, data::ReplayPlan plan, const config::RunConfig& config, ReplayLanes lanes,
               SampleShard shard, c10::Device device, ReplayStages stages = {});

  const data::ReplayPlan& plan() const { return plan_; }
  const ReplayLanes& lanes() const { return lanes_; }
  c10::Device device() const { return device_; }
  int64_t bytes() const { return static_cast<int64_t>(states_.nbytes()); }
  bool holds_states() const { return makes_states() || reads_states(); }  // else states() and samples() have no slots

  // Puts states in the place of the inputs that the plan wants so, in the batch's memory. A state that is not there (of a run
  // that was resumed without it, of a sample that was skipped) leaves the input of the data.
  void feed(const data::Batch& batch);
  // Keeps what the model has made of a batch, `prediction` (B, C', ...), as the input of the samples that follow. Where it is not
  // finite the rollout goes on from the truth. Every rank that shares the samples calls it; of a pipeline those of the last
  // stage.
  void keep(const data::Batch& batch, const at::Tensor& prediction);
  // Ends a step: of a pipeline every rank calls it, and what the last one has kept is where it is needed. CommError when a rank
  // does not take part.
  void end_step();

  const SampleShard& shard() const { return shard_; }
  // Of an input of the data set: (C, ...), whole.
  const std::vector<int64_t>& whole_shape() const { return dataset_.spec().input.shape; }
  // (slots, lanes, C, points that are read) float32 and (slots, lanes) int64, the sample each is the input of or -1, in the
  // host's memory. `sync`: waits for the copies that are under way.
  const at::Tensor& states() const { return states_; }
  const at::Tensor& samples() const { return samples_; }
  void sync() const;
  void clear() const;

 private:
  // Where a sample's state comes from and goes, and the sample that it then is the input of.
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
  at::Tensor made_;             // of a pipeline's last rank: (lanes, C, ...) on the device, the states of this step
  std::vector<Place> awaited_;  // of a pipeline's other readers: where those go
};

}  // namespace welkin::train
