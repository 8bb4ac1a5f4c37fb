// SPDX-License-Identifier: Apache-2.0
// Steps of a tiny run without a trainer, on one rank or several, and a recorder that calls recorded work again.
#pragma once

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "data/sample/epoch_plan.h"
#include "data/sample/sequences.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/mesh/run_mesh.h"
#include "tiny_run.h"
#include "train/step/step.h"

namespace welkin::train {

// What the recorder was asked for.
struct RecorderCalls {
  std::vector<size_t> replayed;
  size_t recorded = 0, runs = 0, waits = 0;
};

// As a device does it: nothing of the work happens while it is recorded.
class EagerRecorder final : public ops::GraphRecorder {
 public:
  explicit EagerRecorder(RecorderCalls& recorder_calls) : recorder_calls_(recorder_calls) {}
  void run(const std::function<void()>& work) override {
    ++recorder_calls_.runs;
    work();
  }
  size_t record(const std::function<void()>& work) override {
    works_.push_back(work);
    return recorder_calls_.recorded++;
  }
  void replay(size_t recording) override {
    recorder_calls_.replayed.push_back(recording);
    works_.at(recording)();
  }
  void wait() override { ++recorder_calls_.waits; }

 private:
  RecorderCalls& recorder_calls_;
  std::vector<std::function<void()>> works_;
};

// Who steps together; a rank alone by default.
struct TinyRanks {
  parallel::MakeGroup make = [](const std::string& name, parallel::GroupMembers members) {
    return parallel::World().group(name, std::move(members));
  };
  int64_t rank = 0, world_size = 1;
  parallel::Group world_group{};
};

// Steps over an epoch whose last is shorter, in micro-batches.
class TinySteps {
 public:
  // `extend` adds rows of a test's own.
  TinySteps(const config::RunConfig& config, RecorderCalls* recorder_calls, const TinyRanks& ranks = {},
            const std::function<void(Registries&)>& extend = {})
      : config_(config), dataset_(tiny_, /*is_training=*/true) {
    add_builtins(registries_);
    if (extend) extend(registries_);
    if (const int64_t steps = config_.loss.multistep.most(); steps > 1) {
      starts_ = std::make_shared<const std::vector<int64_t>>(data::sequence_starts(dataset_, steps));
      sequences_.emplace(dataset_, steps, starts_);
    }
    const data::Dataset& samples = sequences_ ? static_cast<const data::Dataset&>(*sequences_) : dataset_;
    const SetupSource source{config_, registries_, dataset_.spec(), at::kCPU, ranks.world_group};
    layout_ = make_layout({ranks.make, ranks.rank, parallel::mesh_of(config_.parallel, ranks.world_size)}, source);
    setup_ = make_setup(layout_, source, {.total_steps = 64, .steps_per_epoch = 3, .samples = samples.size()});
    StepOptions options{.device = at::kCPU, .world_group = ranks.world_group, .dataset_size = samples.size()};
    options.pending_notes = [this] { return pending_; };
    options.on_forward = [this](const data::Batch& batch, const at::Tensor& /*prediction*/) {
      forward_log_ += cat(batch.step, ".", batch.micro, " ");
    };
    options.wants_forward = [](const data::Batch& batch) { return batch.epoch == 2 && batch.step == 1; };
    if (recorder_calls != nullptr) options.recorder = std::make_unique<EagerRecorder>(*recorder_calls);
    step_ = make_step(*setup_, config_, std::move(options));
    pipeline_ = std::make_unique<data::Pipeline>(samples, data::Sampler(samples.size(), data::Order::Shuffled, config_.loop.seed),
                                                 data::PipelineOptions{.global_batch = 4,
                                                                       .micro_batch = config_.loop.micro_batch_size.samples,
                                                                       .shard = layout_.replicas.group_rank(),
                                                                       .num_shards = layout_.replicas.size(),
                                                                       .drop_last = false});
  }

  // `stop_requested` and `pending`: what this rank tells the others.
  StepRecord next(double stop_requested = 0, double pending = 0) {
    pending_ = pending;
    return step_->run([this] { return pipeline_->next(); }, stop_requested);
  }
  TrainSetup& setup() { return *setup_; }
  const Registries& registries() const { return registries_; }
  const data::SampleSpec& spec() const { return dataset_.spec(); }
  std::string forward_log() { return std::exchange(forward_log_, {}); }

 private:
  config::RunConfig config_;
  TinyData tiny_{.samples = 11};
  TinyFields dataset_;
  std::shared_ptr<const std::vector<int64_t>> starts_;
  std::optional<data::Sequences> sequences_;  // where samples have several steps
  Registries registries_;
  Layout layout_;
  std::unique_ptr<TrainSetup> setup_;
  std::unique_ptr<data::Pipeline> pipeline_;
  std::unique_ptr<Step> step_;
  std::string forward_log_;
  double pending_ = 0;
};

inline void expect_equal_steps(const StepRecord& got, const StepRecord& wanted, int64_t step) {
  EXPECT_EQ(got.samples, wanted.samples) << step;
  EXPECT_EQ(got.num_samples, wanted.num_samples) << step;
  EXPECT_TRUE(at::equal(got.loss, wanted.loss)) << step << " " << got.loss.item<float>() << " " << wanted.loss.item<float>();
  EXPECT_TRUE(at::equal(got.rate, wanted.rate)) << step;
  EXPECT_TRUE(at::equal(got.gradient.norm, wanted.gradient.norm)) << step;
  EXPECT_TRUE(at::equal(got.gradient.found_inf, wanted.gradient.found_inf)) << step;
  EXPECT_TRUE(at::equal(got.gradient.nonfinite, wanted.gradient.nonfinite)) << step;
  EXPECT_EQ(got.requests.defined(), wanted.requests.defined()) << step;
  if (got.requests.defined() && wanted.requests.defined()) {
    EXPECT_TRUE(at::equal(got.requests, wanted.requests)) << step;
  }
}

inline void expect_equal_runs(TinySteps& got, TinySteps& wanted) {
  const auto& rows = wanted.setup().table.rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(at::equal(got.setup().table.rows()[i].local, rows[i].local)) << rows[i].name;
  }
  EXPECT_TRUE(at::equal(got.setup().counter, wanted.setup().counter)) << "which draws the masks";
}

}  // namespace welkin::train
