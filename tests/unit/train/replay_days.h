// SPDX-License-Identifier: Apache-2.0
// Days in a row, on which the buffers of replay tests are tried: a state says how often it has been predicted, and what is known
// of its time is that of the data.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "config/schema/run_config.h"
#include "data/pipeline/pipeline.h"
#include "data/sample/replay_plan.h"
#include "train/replay/replay_buffer.h"

namespace welkin::train {

inline constexpr int64_t kDays = 40, kBatch = 4, kSlots = 3, kLongest = 4, kTrainedSteps = 60, kDayPoints = 2;

// Input: an older state (sun, u), then the newest one; target: u. The sun of sample i is 1000 + i, and u is 1 + i.
class Days : public data::Dataset {
 public:
  explicit Days(std::vector<int64_t> known = {2}) {
    spec_.input = {{"sun[-1]", "u[-1]", "sun", "u"}, {}, {4, 1, kDayPoints}};
    spec_.target = {{"u"}, {}, {1, 1, kDayPoints}};
    spec_.geometry = data::Geometry::Sphere;
    spec_.newest_input_channel = 2;
    spec_.earlier_target = {3};
    spec_.known_input = std::move(known);
  }
  int64_t size() const override { return kDays; }
  const data::SampleSpec& spec() const override { return spec_; }
  data::SamplePlan plan(data::SampleKey key, const data::Region& wanted) const override {
    return {.index = key.index, .region = wanted};
  }
  void read(const data::SamplePlan& /*plan*/, data::SampleView /*out*/) const override {}
  std::optional<int64_t> following(int64_t index) const override {
    return index + 1 < kDays ? std::optional(index + 1) : std::nullopt;
  }

 private:
  data::SampleSpec spec_;
};

inline at::Tensor plane(double value) { return at::full({1, kDayPoints}, value, at::kFloat); }

inline at::Tensor inputs_of(int64_t index) {
  const auto i = static_cast<double>(index);
  return at::stack({plane(999 + i), plane(i), plane(1000 + i), plane(1 + i)});
}

inline config::RunConfig two_states() {
  config::RunConfig config;
  config.data.history = 2;
  return config;
}

inline data::ReplayPlan plan_of(const Days& days) {
  return {days,
          data::Sampler(kDays, data::Order::Shuffled, 7),
          {.batch = kBatch, .slots = kSlots, .longest = kLongest, .steps_per_epoch = kDays / kBatch, .seed = 7}};
}

// What a rank with these places of the batch reads in a step.
inline data::Batch batch_at(const Days& days, int64_t step, const ReplayLanes& lanes) {
  data::Batch batch;
  batch.epoch = step / (kDays / kBatch), batch.step = step % (kDays / kBatch);
  batch.first_position = batch.step * kBatch + lanes.first;
  std::vector<at::Tensor> inputs, targets;
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    batch.indices.push_back(plan_of(days).at(batch.epoch, batch.first_position + lane).key.index);
    inputs.push_back(inputs_of(batch.indices.back()));
    targets.push_back(plane(2 + static_cast<double>(batch.indices.back())).unsqueeze(0));
  }
  batch.input = at::stack(inputs), batch.target = at::stack(targets);
  return batch;
}

}  // namespace welkin::train
