// SPDX-License-Identifier: Apache-2.0
// Steps of a tiny run without a trainer, on one rank or several, and a recorder that calls recorded work again.
#pragma once

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "data/sample/epoch_plan.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/mesh/run_mesh.h"
#include "tiny_run.h"
#include "train/step/step.h"

namespace welkin::train {

// What the recorder was asked for.
struct RecorderDiary {
  std::vector<size_t> replayed;
  size_t recorded = 0, runs = 0, waits = 0;
};

// As a device does it: nothing of the work happens while it is recorded.
class CallAgain final : public ops::GraphRecorder {
 public:
  explicit CallAgain(RecorderDiary& diary) : diary_(diary) {}
  void run(const std::function<void()>& work) override {
    ++diary_.runs;
    work();
  }
  size_t record(const std::function<void()>& work) override {
    works_.push_back(work);
    return diary_.recorded++;
  }
  void replay(size_t recording) override {
    diary_.replayed.push_back(recording);
    works_.at(recording)();
  }
  void wait() override { ++diary_.waits; }

 private:
  RecorderDiary& diary_;
  std::vector<std::function<void()>> works_;
};

// Who steps together; a rank alone by default.
struct TinyRanks {
  parallel::MakeGroup make = [](const std::string& name, parallel::GroupMembers members) {
    return parallel::World().group(name, std::move(members));
  };
  int64_t rank = 0, world_size = 1;
  parallel::Group everyone{};
};

// Steps over an epoch whose last is shorter, in micro-batches.
class TinySteps {
 public:
  TinySteps(const config::RunConfig& config, RecorderDiary* diary, const TinyRanks& ranks = {})
      : config_(config), dataset_(tiny_, /*is_training=*/true) {
    add_builtins(registries_);
    const SetupSource source{config_, registries_, dataset_.spec(), at::kCPU, ranks.everyone};
    layout_ = make_layout({ranks.make, ranks.rank, parallel::mesh_of(config_.parallel, ranks.world_size)}, source);
    setup_ = make_setup(layout_, source, {.total_steps = 64, .steps_per_epoch = 3, .samples = dataset_.size()});
    StepOptions options{.device = at::kCPU, .everyone = ranks.everyone, .dataset_size = dataset_.size()};
    options.pending_notes = [this] { return waiting_; };
    options.on_forward = [this](const data::Batch& batch, const at::Tensor& /*prediction*/) {
      seen_ += cat(batch.step, ".", batch.micro, " ");
    };
    options.wants_forward = [](const data::Batch& batch) { return batch.epoch == 2 && batch.step == 1; };
    if (diary != nullptr) options.recorder = std::make_unique<CallAgain>(*diary);
    step_ = make_step(*setup_, config_, std::move(options));
    pipeline_ =
        std::make_unique<data::Pipeline>(dataset_, data::Sampler(dataset_.size(), data::Order::Shuffled, config_.loop.seed),
                                         data::PipelineOptions{.global_batch = 4,
                                                               .micro_batch = config_.loop.micro_batch_size,
                                                               .shard = layout_.replicas.place(),
                                                               .num_shards = layout_.replicas.size(),
                                                               .drop_last = false});
  }

  // `stop_requested` and `waiting`: what this rank tells the others.
  StepRecord next(double stop_requested = 0, double waiting = 0) {
    waiting_ = waiting;
    return step_->run([this] { return pipeline_->next(); }, stop_requested);
  }
  TrainSetup& setup() { return *setup_; }
  std::string seen() { return std::exchange(seen_, {}); }

 private:
  config::RunConfig config_;
  TinyData tiny_{.samples = 11};
  TinyFields dataset_;
  Registries registries_;
  Layout layout_;
  std::unique_ptr<TrainSetup> setup_;
  std::unique_ptr<data::Pipeline> pipeline_;
  std::unique_ptr<Step> step_;
  std::string seen_;
  double waiting_ = 0;
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
