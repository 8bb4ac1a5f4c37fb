// SPDX-License-Identifier: Apache-2.0
// What the tutorials' switches of loading mean (docs/reference/switches.md), each with its off value; the batches are the same
// under all.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "data/datasets/box_dataset.h"
#include "data/datasets/open.h"
#include "data/formats/npy_file.h"
#include "data/pipeline/pipeline.h"
#include "data_files.h"
#include "eventually.h"

namespace welkin::data::tests {
namespace {

using ::testing::Contains;
using ::testing::Not;

// Remembers which threads have read, and in which epochs' order.
class WatchedSamples : public Dataset {
 public:
  WatchedSamples() {
    spec_.input.shape = {1, 2, 2};
    spec_.target.shape = {1, 2, 2};
  }
  int64_t size() const override { return 16; }
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override {
    SamplePlan plan;
    plan.index = key.index;
    plan.region = wanted;
    return plan;
  }
  void read(const SamplePlan& plan, SampleView out) const override {
    std::this_thread::sleep_for(std::chrono::microseconds(100));  // so that every thread gets a share
    std::ranges::fill(out.input, static_cast<float>(plan.index));
    std::ranges::fill(out.target, static_cast<float>(-plan.index));
    const std::lock_guard lock(mutex_);
    readers_.insert(std::this_thread::get_id());
  }
  std::set<std::thread::id> take_readers() const {
    const std::lock_guard lock(mutex_);
    return std::exchange(readers_, {});
  }

 private:
  SampleSpec spec_;
  mutable std::mutex mutex_;
  mutable std::set<std::thread::id> readers_;
};

std::unique_ptr<Pipeline> pipeline_of(const Dataset& dataset, PipelineOptions options) {
  options.global_batch = options.micro_batch = 4;
  return std::make_unique<Pipeline>(dataset, Sampler(dataset.size(), Order::Shuffled, 3), options);
}

TEST(ReadingSwitches, NoWorkersReadInTheStepsThreadWhenTheStepAsks) {
  const WatchedSamples dataset;
  const auto pipeline = pipeline_of(dataset, {.num_workers = 0, .prefetch_depth = 4});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(pipeline->samples_read(), 0) << "nothing is read before the step asks";
  for (int i = 0; i < 5; ++i) pipeline->next();
  EXPECT_EQ(pipeline->samples_read(), 5 * 4) << "nor ahead of it";
  EXPECT_EQ(dataset.take_readers(), std::set{std::this_thread::get_id()});
}

TEST(ReadingSwitches, WorkersAreThreadsOfTheirOwnThatReadAhead) {
  const WatchedSamples dataset;
  const auto pipeline = pipeline_of(dataset, {.num_workers = 3, .prefetch_depth = 4});
  for (int i = 0; i < 40; ++i) pipeline->next();
  const auto readers = dataset.take_readers();
  EXPECT_EQ(readers.size(), 3u);
  EXPECT_THAT(readers, Not(Contains(std::this_thread::get_id())));
}

TEST(ReadingSwitches, PrefetchDepthIsTheNumberOfBatchesHeldReadyAndTheirMemory) {
  const WatchedSamples dataset;
  const uint64_t batch = 4 * 2 * 4 * sizeof(float);
  for (const int64_t depth : {1, 2, 6}) {
    const auto pipeline = pipeline_of(dataset, {.num_workers = 2, .prefetch_depth = depth});
    EXPECT_EQ(pipeline->buffer_bytes(), (static_cast<uint64_t>(depth) + 2) * batch) << "and the two that the step may use";
    pipeline->next();
    EXPECT_TRUE(welkin::tests::eventually([&] { return pipeline->samples_read() >= (depth + 2) * 4; })) << depth;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(pipeline->samples_read(), (depth + 2) * 4) << "then the threads wait";
    EXPECT_EQ(pipeline->buffer_bytes(), (static_cast<uint64_t>(depth) + 2) * batch);
  }
}

TEST(ReadingSwitches, PersistentWorkersAreTheSameThreadsInEveryEpoch) {
  const WatchedSamples dataset;
  for (const bool persistent : {true, false}) {
    const auto pipeline = pipeline_of(dataset, {.num_workers = 2, .prefetch_depth = 2, .persistent_workers = persistent});
    dataset.take_readers();
    for (int i = 0; i < 4; ++i) pipeline->next();
    const auto reads_on = [&] { return pipeline->samples_read() > 16; };  // across the end of an epoch
    if (persistent) {
      EXPECT_TRUE(welkin::tests::eventually(reads_on));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_FALSE(reads_on());
    }
    const int64_t epochs = 6;
    std::set<std::thread::id> readers = dataset.take_readers();
    for (int64_t i = 0; i < 4 * epochs; ++i) pipeline->next();
    readers.merge(dataset.take_readers());
    if (persistent) {
      EXPECT_EQ(readers.size(), 2u);
    }
  }
}

TEST(ReadingSwitches, EveryCombinationGivesTheSameBatches) {
  const WatchedSamples dataset;
  const auto taken = [&](const PipelineOptions& options) {
    const auto pipeline = pipeline_of(dataset, options);
    std::vector<int64_t> indices;
    for (int i = 0; i < 11; ++i) {
      const Batch batch = pipeline->next();
      indices.insert(indices.end(), batch.indices.begin(), batch.indices.end());
      EXPECT_EQ(batch.input[0][0][0][0].item<float>(), static_cast<float>(batch.indices[0]));
      EXPECT_FALSE(batch.input.is_pinned()) << "there is no copy to a device";
    }
    return indices;
  };
  const std::vector<int64_t> baseline =
      taken({.num_workers = 0, .prefetch_depth = 1, .persistent_workers = false, .pin_memory = false, .non_blocking = false});
  for (const int64_t workers : {0, 2}) {
    for (const bool on : {false, true}) {
      EXPECT_EQ(
          taken({.num_workers = workers, .prefetch_depth = 3, .persistent_workers = on, .pin_memory = on, .non_blocking = on}),
          baseline);
      EXPECT_EQ(taken({.num_workers = workers, .persistent_workers = !on, .pin_memory = on, .non_blocking = !on}), baseline);
    }
  }
}

class LoaderKinds : public ::testing::Test {
 protected:
  LoaderKinds() {
    write_box_file(folder_ / "box.h5", 8);
    const std::vector<float> input = counting(4 * 512), target = counting(5 * 512);
    write_npy(folder_ / "data.npy", {8, 8, 8, 4}, channel_last(input, 4));
    write_npy(folder_ / "label.npy", {8, 8, 8, 5}, channel_last(target, 5));
    config_.data.dataset = "nbody";
    config_.data.data_size = 4;
    config_.data.Nsamples = 12;
    config_.model.N_in_channels = 4;
    config_.model.N_out_channels = 5;
    config_.data.train_path = (folder_ / "box.h5").string();
    config_.data.train_path_npy_data = (folder_ / "data.npy").string();
    config_.data.train_path_npy_label = (folder_ / "label.npy").string();
  }

  static std::vector<float> channel_last(const std::vector<float>& values, size_t channels) {
    const size_t cells = values.size() / channels;
    std::vector<float> turned(values.size());
    for (size_t c = 0; c < channels; ++c) {
      for (size_t i = 0; i < cells; ++i) turned[i * channels + c] = values[c * cells + i];
    }
    return turned;
  }

  struct Taken {
    std::vector<float> values;
    uint64_t read_while_opening = 0, read_later = 0;
  };
  Taken take(config::Loader kind) {
    config_.data.data_loader_config = kind;
    const auto dataset = (config_.data.dataset == "era5" ? open_fields : open_boxes)(config_, Split::Train);
    Taken taken{.values = {}, .read_while_opening = dataset->bytes_requested()};
    const auto pipeline = pipeline_of(*dataset, {});
    for (int i = 0; i < 3; ++i) {
      const at::Tensor input = pipeline->next().input.contiguous();
      taken.values.insert(taken.values.end(), input.const_data_ptr<float>(), input.const_data_ptr<float>() + input.numel());
    }
    taken.read_later = dataset->bytes_requested() - taken.read_while_opening;
    return taken;
  }

  DataFolder folder_;
  config::RunConfig config_;
};

TEST_F(LoaderKinds, BoxesAreReadWhenTheyAreNeededOrHeldWithTheSameCrops) {
  const Taken lowmem = take(config::Loader::LowMem), inmem = take(config::Loader::InMem), dali = take(config::Loader::DaliLowMem);
  EXPECT_EQ(lowmem.values, inmem.values);
  EXPECT_EQ(lowmem.values, dali.values);
  const uint64_t delivered = 3 * 4 * 9 * 64 * sizeof(float);
  EXPECT_EQ(lowmem.read_while_opening, 0u);
  EXPECT_EQ(lowmem.read_later, delivered) << "the crops and no byte more";
  EXPECT_EQ(inmem.read_later, 0u) << "all of it was read before the first step";
  EXPECT_EQ(dali.read_later, delivered);
  config_.data.resident = config::Residence::Host;
  EXPECT_EQ(take(config::Loader::LowMem).read_later, 0u);
  EXPECT_EQ(take(config::Loader::DaliLowMem).values, lowmem.values);
}

TEST_F(LoaderKinds, FieldsAreReadAlikeByPytorchAndDali) {
  std::filesystem::create_directory(folder_ / "years");
  write_field_file(folder_ / "years/2000.h5", {.steps = 13});
  write_npy(folder_ / "means.npy", {1, 2, 1, 1}, std::vector<float>{1, 2});
  write_npy(folder_ / "stds.npy", {1, 2, 1, 1}, std::vector<float>{3, 4});
  config_.data.dataset = "era5";
  config_.data.train_data_path = (folder_ / "years").string();
  config_.data.global_means_path = (folder_ / "means.npy").string();
  config_.data.global_stds_path = (folder_ / "stds.npy").string();
  config_.model.img_size = {4, 6};
  config_.model.n_in_channels = config_.model.n_out_channels = 2;
  const Taken pytorch = take(config::Loader::PyTorch), dali = take(config::Loader::Dali);
  EXPECT_EQ(pytorch.values, dali.values);
  EXPECT_EQ(pytorch.read_later, 3u * 4 * 2 * 48 * sizeof(float));
  EXPECT_EQ(dali.read_later, pytorch.read_later);
}

}  // namespace
}  // namespace welkin::data::tests
