// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/pipeline.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "core/error.h"
#include "core/text.h"
#include "data/datasets/box_dataset.h"
#include "data/datasets/channel_statistics.h"
#include "data/formats/array_file.h"
#include "data/pipeline/device_transform.h"
#include "data/sample/epoch_plan.h"
#include "data_files.h"
#include "eventually.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Sample i: input filled with i and the draw, target with -i. Slow for some samples, failing for one, so that order is tested.
class NumberedSamples : public Dataset {
 public:
  explicit NumberedSamples(int64_t size, int64_t failing = -1) : size_(size), failing_(failing) {
    spec_.input.shape = {2, 2, 2};
    spec_.target.shape = {1, 2, 2};
    spec_.input_mean = {1, 0};
    spec_.input_std = {2, 1};
  }
  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override {
    SamplePlan plan;
    plan.index = key.index;
    plan.time = static_cast<int64_t>(key.draw % 1000);
    plan.region = wanted;
    return plan;
  }
  void read(const SamplePlan& plan, SampleView out) const override {
    ++reads;
    if (plan.index % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    if (plan.index == failing_) throw DataError("data", cat("a bad sample: index=", plan.index), "Try another");
    for (size_t i = 0; i < 4; ++i) {
      out.input[i] = static_cast<float>(plan.index);
      out.input[4 + i] = static_cast<float>(plan.time);
      out.target[i] = static_cast<float>(-plan.index);
    }
  }
  mutable std::atomic<int64_t> reads = 0;

 private:
  int64_t size_, failing_;
  SampleSpec spec_;
};

struct Taken {
  std::vector<int64_t> indices, positions;
  std::vector<float> input, target;
};

void append(Taken& taken, const Batch& batch) {
  taken.indices.insert(taken.indices.end(), batch.indices.begin(), batch.indices.end());
  const at::Tensor sample = batch.sample.contiguous(), input = batch.input.contiguous(), target = batch.target.contiguous();
  const auto* positions = static_cast<const int64_t*>(sample.data_ptr());
  taken.positions.insert(taken.positions.end(), positions, positions + sample.numel());
  const auto* in = static_cast<const float*>(input.data_ptr());
  taken.input.insert(taken.input.end(), in, in + input.numel());
  const auto* out = static_cast<const float*>(target.data_ptr());
  taken.target.insert(taken.target.end(), out, out + target.numel());
}

// `steps` whole steps from where the pipeline stands.
Taken take_steps(Pipeline& pipeline, int64_t steps) {
  Taken taken;
  for (int64_t step = 0; step < steps; ++step) {
    int64_t samples = 0;
    for (int64_t micro = 0, num_micro = 1; micro < num_micro; ++micro) {
      const Batch batch = pipeline.next();
      num_micro = batch.num_micro;
      EXPECT_EQ(batch.micro, micro);
      samples += batch.input.size(0);
      append(taken, batch);
      if (micro + 1 == num_micro) {
        EXPECT_EQ(samples, batch.step_samples);
      }
    }
  }
  return taken;
}

void expect_equal(const Taken& a, const Taken& b) {
  EXPECT_EQ(a.indices, b.indices);
  EXPECT_EQ(a.positions, b.positions);
  EXPECT_EQ(a.input, b.input);
  EXPECT_EQ(a.target, b.target);
}

Sampler shuffled(const Dataset& dataset) { return Sampler(dataset.size(), Order::Shuffled, 5); }

TEST(PipelineTest, AnyNumberOfThreadsGivesTheSameBatches) {
  const NumberedSamples dataset(37);
  PipelineOptions options{.global_batch = 8, .micro_batch = 3};
  Pipeline reference(dataset, shuffled(dataset), options);
  EXPECT_EQ(reference.steps_per_epoch(), 4);
  const Taken wanted = take_steps(reference, 13);
  EXPECT_EQ(wanted.indices.size(), 13u * 8);
  for (const int64_t workers : {1, 2, 4, 9}) {
    for (const int64_t depth : {1, 2, 7}) {
      options.num_workers = workers;
      options.prefetch_depth = depth;
      Pipeline pipeline(dataset, shuffled(dataset), options);
      expect_equal(take_steps(pipeline, 13), wanted);
    }
  }
}

TEST(PipelineTest, ValuesAreTheSamplesNormalised) {
  const NumberedSamples dataset(10);
  Pipeline pipeline(dataset, Sampler(10, Order::Sequential, 0), {.global_batch = 2, .micro_batch = 2, .num_workers = 2});
  const Batch batch = pipeline.next();
  EXPECT_THAT(batch.input.sizes(), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(batch.target.sizes(), ElementsAre(2, 1, 2, 2));
  EXPECT_EQ(batch.input[1][0][0][0].item<float>(), 0.0f) << "(1 - 1) / 2";
  EXPECT_EQ(batch.input[0][0][1][1].item<float>(), -0.5f);
  EXPECT_EQ(batch.target[1][0][1][1].item<float>(), -1.0f);
}

// The shards of a step together hold the positions of the step of one process, in order.
TEST(PipelineTest, ShardsPartitionEveryStep) {
  const NumberedSamples dataset(37);
  for (const bool drop_last : {true, false}) {
    PipelineOptions options{.global_batch = 8, .micro_batch = 8, .drop_last = drop_last};
    Pipeline whole_pipeline(dataset, shuffled(dataset), options);
    for (const int64_t num_shards : {1, 2, 4, 64}) {
      options.num_shards = num_shards;
      options.micro_batch = 3;
      std::vector<std::unique_ptr<Pipeline>> shards;
      for (options.shard = 0; options.shard < num_shards; ++options.shard) {
        shards.push_back(std::make_unique<Pipeline>(dataset, shuffled(dataset), options));
      }
      options.shard = 0;
      whole_pipeline.resume({0, 0});
      for (int64_t step = 0; step < 2 * whole_pipeline.steps_per_epoch(); ++step) {
        Taken parts;
        const std::vector<int64_t> named = shards.back()->samples_of_all(shards.back()->state());
        for (const auto& shard : shards) {
          const Taken part = take_steps(*shard, 1);
          parts.indices.insert(parts.indices.end(), part.indices.begin(), part.indices.end());
          parts.positions.insert(parts.positions.end(), part.positions.begin(), part.positions.end());
          parts.input.insert(parts.input.end(), part.input.begin(), part.input.end());
          parts.target.insert(parts.target.end(), part.target.begin(), part.target.end());
        }
        EXPECT_EQ(named, parts.indices);
        expect_equal(parts, take_steps(whole_pipeline, 1));
      }
    }
  }
}

TEST(PipelineTest, ValidationCountsEverySampleOnceForAnyShards) {
  const NumberedSamples dataset(37);
  for (const int64_t num_shards : {1, 2, 4, 64}) {
    std::multiset<int64_t> seen;
    for (int64_t shard = 0; shard < num_shards; ++shard) {
      Pipeline pipeline(dataset, Sampler(37, Order::Sequential, 0),
                        {.global_batch = 36, .micro_batch = 5, .shard = shard, .num_shards = num_shards, .drop_last = false});
      EXPECT_EQ(pipeline.steps_per_epoch(), 2);
      for (const int64_t index : take_steps(pipeline, 2).indices) seen.insert(index);
    }
    EXPECT_EQ(seen.size(), 37u);
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 37u);
  }
}

TEST(PipelineTest, AShardWithoutSamplesGetsAnEmptyBatch) {
  const NumberedSamples dataset(5);
  Pipeline pipeline(dataset, Sampler(5, Order::Sequential, 0),
                    {.global_batch = 4, .micro_batch = 4, .shard = 0, .num_shards = 2, .drop_last = false, .num_workers = 2});
  take_steps(pipeline, 1);
  const Batch last = pipeline.next();
  EXPECT_EQ(last.step, 1);
  EXPECT_EQ(last.step_samples, 0);
  EXPECT_EQ(last.num_micro, 1);
  EXPECT_THAT(last.input.sizes(), ElementsAre(0, 2, 2, 2));
  EXPECT_EQ(pipeline.next().epoch, 1);
}

TEST(PipelineTest, ResumeInTheMiddleOfAnEpochContinuesExactly) {
  const NumberedSamples dataset(37);
  for (const int64_t workers : {0, 3}) {
    const PipelineOptions options{.global_batch = 8, .micro_batch = 3, .num_workers = workers, .prefetch_depth = 4};
    Pipeline first(dataset, shuffled(dataset), options);
    take_steps(first, 6);
    const PipelineState state = first.state();
    EXPECT_EQ(state.epoch, 1);
    EXPECT_EQ(state.step, 2);
    const Taken wanted = take_steps(first, 7);
    Pipeline second(dataset, shuffled(dataset), options);
    take_steps(second, 1);
    second.resume(state);
    EXPECT_EQ(second.state().step, 2);
    expect_equal(take_steps(second, 7), wanted);
    second.resume(state);
    expect_equal(take_steps(second, 7), wanted);
  }
}

TEST(PipelineTest, BatchesStayValidUntilTheCallAfterNext) {
  const NumberedSamples dataset(64);
  Pipeline pipeline(dataset, Sampler(64, Order::Sequential, 0),
                    {.global_batch = 2, .micro_batch = 2, .num_workers = 4, .prefetch_depth = 1});
  Batch before = pipeline.next();
  for (int64_t step = 1; step < 32; ++step) {
    const Batch now = pipeline.next();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    EXPECT_EQ(before.target[0][0][0][0].item<float>(), static_cast<float>(-2 * (step - 1)));
    before = now;
  }
}

TEST(PipelineTest, ReadsNoFurtherAheadThanAllowed) {
  const NumberedSamples dataset(1000);
  Pipeline pipeline(dataset, shuffled(dataset), {.global_batch = 4, .micro_batch = 4, .num_workers = 4, .prefetch_depth = 3});
  pipeline.next();
  EXPECT_TRUE(welkin::tests::eventually([&] { return dataset.reads >= 4 * (1 + 3); })) << dataset.reads;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(dataset.reads, 4 * (1 + 3 + 1));
}

TEST(PipelineTest, ErrorsOfReadingThreadsAreRethrownAtTheirBatch) {
  const NumberedSamples dataset(64, /*failing=*/21);
  for (const int64_t workers : {0, 4}) {
    Pipeline pipeline(dataset, Sampler(64, Order::Sequential, 0), {.global_batch = 4, .micro_batch = 4, .num_workers = workers});
    take_steps(pipeline, 5);
    for (int again = 0; again < 2; ++again) {
      EXPECT_THAT([&] { pipeline.next(); }, ThrowsMessage<DataError>(HasSubstr("[data] a bad sample: index=21. Try another")));
    }
    pipeline.resume({0, 8});
    EXPECT_THAT(take_steps(pipeline, 1).indices, ElementsAre(32, 33, 34, 35));
  }
}

TEST(PipelineTest, EndsWhileThreadsRead) {
  const NumberedSamples dataset(1000);
  for (int i = 0; i < 20; ++i) {
    Pipeline pipeline(dataset, shuffled(dataset), {.global_batch = 8, .micro_batch = 8, .num_workers = 4});
    if (i % 2 == 0) pipeline.next();
  }
}

TEST(PipelineTest, MisfitsAreNamed) {
  const NumberedSamples dataset(5);
  EXPECT_THAT([&] { Pipeline(dataset, shuffled(dataset), {.global_batch = 8, .micro_batch = 8}); },
              ThrowsMessage<DataError>(HasSubstr("[data] the batch is larger than the data: global_batch_size=8, samples=5. "
                                                 "Reduce global_batch_size or give more data")));
  Pipeline pipeline(dataset, shuffled(dataset), {.global_batch = 2, .micro_batch = 2});
  EXPECT_THAT(
      [&] {
        pipeline.resume({1, 2});
      },
      ThrowsMessage<CheckpointError>(HasSubstr("a position outside of the epoch: epoch=1, step=2, steps_per_epoch=2")));
}

// The real thing: crops of a mapped box under four threads.
TEST(PipelineTest, BoxCropsDoNotDependOnThreads) {
  const DataFolder folder;
  write_box_file(folder / "box.h5", 12);
  const BoxDataset dataset(open_box(open_array_file(folder / "box.h5"), "Nbody"),
                           open_box(open_array_file(folder / "box.h5"), "Hydro"),
                           {.source = "box", .crop = 8, .num_samples = 40});
  Pipeline alone(dataset, shuffled(dataset), {.global_batch = 4, .micro_batch = 4});
  Pipeline many(dataset, shuffled(dataset), {.global_batch = 4, .micro_batch = 4, .num_workers = 4});
  expect_equal(take_steps(alone, 25), take_steps(many, 25));
}

TEST(PipelineTest, AFileThatShrinksWhileThreadsReadIsAnError) {
  const DataFolder folder;
  write_box_file(folder / "box.h5", 24);
  const BoxDataset dataset(open_box(open_array_file(folder / "box.h5"), "Nbody"),
                           open_box(open_array_file(folder / "box.h5"), "Hydro"),
                           {.source = "box", .crop = 16, .num_samples = 4000});
  Pipeline pipeline(dataset, shuffled(dataset), {.global_batch = 4, .micro_batch = 4, .num_workers = 4});
  take_steps(pipeline, 2);
  std::filesystem::resize_file(folder / "box.h5", 4096);
  EXPECT_THAT([&] { take_steps(pipeline, 20); }, ThrowsMessage<DataError>(HasSubstr("truncated or written to")));
}

TEST(DeviceStageTest, DeviceNormalisationEqualsTheHostsBitForBit) {
  std::vector<float> values = counting(3 * 1000);
  for (float& value : values) value = 273.15f + value * 0.0137f;
  for (const auto& [mean, std] : std::vector<std::pair<std::vector<double>, std::vector<double>>>{
           {{280, 290.5, 300.25}, {3, 7, 0.3125}}, {{280.123456789, 290.5, 300.2}, {3.3, 7.7, 0.3000001}}}) {
    const at::Tensor raw = at::from_blob(values.data(), {1, 3, 10, 100}, at::kFloat).clone();
    const at::Tensor device =
        DeviceTransform({.clip = {}, .log = {}, .mean = mean, .std = std}, 3, {}, c10::kCPU).apply(raw, {0});
    std::vector<float> host = values;
    normalise(host, mean, std);
    EXPECT_TRUE(at::equal(device.flatten(), at::from_blob(host.data(), {3000}, at::kFloat)));
    EXPECT_NE(host, values);
  }
}

TEST(EpochPlanTest, MicroBatchesCoverTheShardsShare) {
  const EpochPlan plan(
      {.num_samples = 23, .global_batch = 10, .micro_batch = 2, .shard = 1, .num_shards = 2, .drop_last = false});
  EXPECT_EQ(plan.steps_per_epoch(), 3);
  const MicroBatch last_of_step = plan.at(0, 0, 2);
  EXPECT_EQ(last_of_step.first_position, 9);
  EXPECT_EQ(last_of_step.count, 1);
  EXPECT_EQ(last_of_step.num_micro, 3);
  EXPECT_EQ(last_of_step.step_samples, 5);
  const MicroBatch tail = plan.at(0, 2, 0);
  EXPECT_EQ(tail.first_position, 21);
  EXPECT_EQ(tail.count, 2);
  EXPECT_EQ(plan.after(tail).epoch, 1);
}

}  // namespace
}  // namespace welkin::data::tests
