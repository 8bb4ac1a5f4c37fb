// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/sample_check.h"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "data/datasets/box_dataset.h"
#include "data/datasets/era5_dataset.h"
#include "data/pipeline/pipeline.h"
#include "data/storage/read_watch.h"
#include "data_files.h"
#include "eventually.h"

namespace welkin::data::tests {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::ThrowsMessage;

// Sample i holds i everywhere; samples in `bad` cannot be read, sample `nan` has NaN in the second channel of its target.
class FaultySamples : public Dataset {
 public:
  FaultySamples(int64_t size, std::vector<int64_t> bad, int64_t nan = -1) : size_(size), bad_(std::move(bad)), nan_(nan) {
    spec_.input = {.channels = {"a"}, .units = {""}, .shape = {1, 2, 2}};
    spec_.target = {.channels = {"b", "c"}, .units = {"", ""}, .shape = {2, 2, 2}};
    spec_.target_mean = {1, 5};
    spec_.target_std = {1, 2};
  }
  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override {
    SamplePlan plan;
    plan.index = key.index;
    plan.region = wanted;
    return plan;
  }
  void read(const SamplePlan& plan, SampleView out) const override {
    if (std::ranges::count(bad_, plan.index) > 0) throw DataError("data", cat("a damaged sample: index=", plan.index), "Mend it");
    std::ranges::fill(out.input, static_cast<float>(plan.index));
    std::ranges::fill(out.target, static_cast<float>(plan.index));
    if (plan.index == nan_) out.target[5] = std::nanf(""), out.target[6] = std::numeric_limits<float>::infinity();
  }

 private:
  int64_t size_;
  std::vector<int64_t> bad_;
  int64_t nan_;
  SampleSpec spec_;
};

struct Read {
  std::vector<float> input = std::vector<float>(4), target = std::vector<float>(8);
  SampleOutcome outcome;
};

Read read_one(const Dataset& dataset, int64_t index, const SampleRules& rules) {
  Read read;
  read_checked(dataset, {.index = index}, whole(dataset.spec()), rules, {read.input, read.target}, read.outcome);
  return read;
}

struct CropsTaken {
  std::vector<int64_t> indices;
  std::vector<float> first_values;
  std::vector<std::string> notes;
};

CropsTaken take_crops(const Dataset& dataset, const SampleRules& rules, int64_t workers) {
  CropsTaken taken;
  Pipeline pipeline(
      dataset, Sampler(dataset.size(), Order::Shuffled, 0),
      {.global_batch = 4, .micro_batch = 4, .num_workers = workers, .rules = rules, .report = [&](const std::string& note) {
         taken.notes.push_back(note);
       }});
  for (int64_t step = 0; step < pipeline.steps_per_epoch(); ++step) {
    const Batch batch = pipeline.next();
    taken.indices.insert(taken.indices.end(), batch.indices.begin(), batch.indices.end());
    for (int64_t i = 0; i < batch.input.size(0); ++i) taken.first_values.push_back(batch.input[i].flatten()[0].item<float>());
  }
  return taken;
}

TEST(SampleCheck, ABadSampleIsAnErrorOrReplacedByTheNext) {
  const FaultySamples dataset(5, {3, 4});
  EXPECT_THAT([&] { read_one(dataset, 3, {}); },
              ThrowsMessage<DataError>(HasSubstr("[data] a damaged sample: index=3. Mend it.")));
  const Read read = read_one(dataset, 3, {.bad_sample = BadSample::Skip});
  EXPECT_EQ(read.outcome.index, 0) << "3 and 4 are bad, after the last comes the first";
  EXPECT_EQ(read.input.front(), 0.0f);
  EXPECT_THAT(read.outcome.notes, ElementsAre(HasSubstr("a sample was skipped: index=3, reason=[data] a damaged sample: index=3"),
                                              HasSubstr("a sample was skipped: index=4")));
}

TEST(SampleCheck, DataOfWhichNothingCanBeReadIsAnErrorEvenWhereSamplesMayBeSkipped) {
  std::vector<int64_t> all(20);
  std::iota(all.begin(), all.end(), 0);
  const FaultySamples dataset(20, all);
  std::vector<std::string> notes;
  Pipeline pipeline(
      dataset, Sampler(20, Order::Sequential, 0),
      {.global_batch = 1, .micro_batch = 1, .rules = {.bad_sample = BadSample::Skip}, .report = [&](const std::string& note) {
         notes.push_back(note);
       }});
  EXPECT_THAT([&] { pipeline.next(); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("[data] 16 bad samples in a row, and the next one is bad too: index=16"),
                                             HasSubstr("[data] a damaged sample: index=16"))));
  EXPECT_EQ(notes.size(), 16u) << "what was skipped before it gave up is said too";
}

// Many of the crops of 8 hold the NaN, all those of 13. A crop is a function of the draw, not of the index.
TEST(SampleCheck, ADrawnCropThatIsBadIsReplacedByAnotherCrop) {
  std::vector<float> values(16 * 16 * 16);
  values[(8 * 16 + 8) * 16 + 8] = std::nanf("");
  const auto box = make_box({1, {16, 16, 16}}, values);
  const BoxDataset dataset(box, box, {.source = "box", .crop = 13, .num_samples = 24});
  const SampleRules rules{.bad_sample = BadSample::Skip, .nan = NanPolicy::Error};
  const BoxDataset smaller(box, box, {.source = "box", .crop = 8, .num_samples = 24});
  EXPECT_THAT([&] { take_crops(dataset, rules, 0); }, ThrowsMessage<DataError>(HasSubstr("16 bad samples in a row")))
      << "every crop of 13 holds it";
  const CropsTaken alone = take_crops(smaller, rules, 0), threads = take_crops(smaller, rules, 3);
  EXPECT_THAT(alone.notes, Contains(HasSubstr("a sample was skipped: index=")));
  EXPECT_EQ(threads.indices, alone.indices);
  EXPECT_EQ(threads.notes.size(), alone.notes.size());
}

// The crops that are good from the start are those of a run that skips nothing.
TEST(SampleCheck, OnlyTheCropsThatAreBadAreOthers) {
  std::vector<float> values = counting(16 * 16 * 16);
  const auto whole_box = make_box({1, {16, 16, 16}}, values);
  values[(8 * 16 + 8) * 16 + 8] = std::nanf("");
  const auto box = make_box({1, {16, 16, 16}}, values);
  const BoxDataset good(whole_box, whole_box, {.source = "box", .crop = 8, .num_samples = 24});
  const BoxDataset bad(box, box, {.source = "box", .crop = 8, .num_samples = 24});
  const SampleRules rules{.bad_sample = BadSample::Skip, .nan = NanPolicy::Error};
  const CropsTaken expected = take_crops(good, rules, 0), found = take_crops(bad, rules, 0);
  size_t others = 0;
  for (size_t i = 0; i < found.indices.size(); ++i) {
    if (found.indices[i] == expected.indices[i]) {
      EXPECT_EQ(found.first_values[i], expected.first_values[i]);
    } else {
      ++others;
      EXPECT_NE(found.first_values[i], expected.first_values[i]);
    }
  }
  EXPECT_THAT(others, AllOf(Gt(0u), Lt(found.indices.size())));
}

TEST(SampleCheck, NanIsAnErrorMaskedOrReported) {
  const FaultySamples dataset(5, {}, 2);
  EXPECT_THAT([&] { read_one(dataset, 2, {.nan = NanPolicy::Error}); },
              ThrowsMessage<DataError>(
                  HasSubstr("[data] values that are not finite: index=2, target_channel=1 (c), values=2. Fill "
                            "them (welkin data ingest --missing mean), or set nan_policy to mask (the mean) or hole")));
  const Read masked = read_one(dataset, 2, {.nan = NanPolicy::Mask});
  EXPECT_THAT(masked.target, ElementsAre(2, 2, 2, 2, 2, 5, 5, 2)) << "the channel's mean";
  EXPECT_THAT(masked.outcome.notes, IsEmpty());
  EXPECT_EQ(masked.outcome.masked.first, "values that are not finite: index=2, target_channel=1 (c), values=2");
  EXPECT_EQ(masked.outcome.masked.values, 2);
  EXPECT_THAT(masked.outcome.masked.channels, ElementsAre("target c"));
  const Read reported = read_one(dataset, 2, {.nan = NanPolicy::Report});
  EXPECT_TRUE(std::isnan(reported.target[5]));
  EXPECT_THAT(reported.outcome.notes, ElementsAre(HasSubstr("values=2")));
  EXPECT_THAT(read_one(dataset, 1, {.nan = NanPolicy::Error}).outcome.notes, IsEmpty());
  EXPECT_THAT(read_one(dataset, 2, {}).outcome.notes, IsEmpty());
}

// One line for the first, one for each epoch.
TEST(SampleCheck, ThePipelineSumsUpWhatItMasked) {
  const FaultySamples dataset(6, {}, 2);
  for (const int64_t workers : {0, 3}) {
    std::vector<std::string> notes;
    Pipeline pipeline(dataset, Sampler(6, Order::Sequential, 0),
                      {.global_batch = 2,
                       .micro_batch = 2,
                       .num_workers = workers,
                       .rules = {.nan = NanPolicy::Mask},
                       .report = [&](const std::string& note) { notes.push_back(note); }});
    for (int step = 0; step < 9; ++step) pipeline.next();
    EXPECT_THAT(
        notes, ElementsAre("values that are not finite: index=2, target_channel=1 (c), values=2, masked with the channel's mean; "
                           "what follows is counted until the epoch ends",
                           "masked with the channels' means in epoch 1: values=2, samples=1, channels=[target c]",
                           "masked with the channels' means in epoch 2: values=2, samples=1, channels=[target c]",
                           "masked with the channels' means in epoch 3: values=2, samples=1, channels=[target c]"));
  }
}

TEST(SampleCheck, TheFirstValueThatIsNotFiniteIsFoundAgain) {
  const FaultySamples dataset(5, {}, 2);
  const auto found = [&](int64_t index, const SampleRules& rules) {
    return first_nonfinite(dataset, {.index = index}, whole(dataset.spec()), rules);
  };
  EXPECT_EQ(found(1, {}), "");
  EXPECT_THAT(found(2, {}), HasSubstr("index=2, target_channel=1 (c), "));
  EXPECT_THAT(found(2, {}), HasSubstr("value="));
  EXPECT_EQ(found(2, {.nan = NanPolicy::Mask}), "") << "what is masked is no cause";
  const DataFolder folder;
  write_field_file(folder / "2001.h5", {.first = -100, .names = {"t", "u"}});
  const Era5Dataset fields({.folder = folder.path(), .height = 2, .width = 3, .crop = {{1, 2}}, .input_log = {1}});
  EXPECT_EQ(first_nonfinite(fields, {.index = 0}, whole(fields.spec()), {}),
            "path=" + (folder / "2001.h5").string() +
                ", dataset=fields, step=0, target_step=1, index=0, input_channel=1 (u), row=1, column=2, value=-68, after clip, "
                "log and normalisation=nan");
}

// Which samples are in a batch and what is reported does not depend on threads.
TEST(SampleCheck, ThePipelineReportsWhatItSkipped) {
  const FaultySamples dataset(8, {2, 5});
  for (const int64_t workers : {0, 3}) {
    std::vector<std::string> notes;
    Pipeline pipeline(dataset, Sampler(8, Order::Sequential, 0),
                      {.global_batch = 4,
                       .micro_batch = 4,
                       .num_workers = workers,
                       .rules = {.bad_sample = BadSample::Skip},
                       .report = [&](const std::string& note) { notes.push_back(note); }});
    EXPECT_THAT(pipeline.next().indices, ElementsAre(0, 1, 3, 3));
    EXPECT_THAT(pipeline.next().indices, ElementsAre(4, 6, 6, 7));
    EXPECT_THAT(notes, ElementsAre(HasSubstr("index=2"), HasSubstr("index=5")));
  }
}

// Without persistent workers nothing is read across the end of an epoch, and the batches are the same.
TEST(SampleCheck, WorkersThatEndWithTheEpochGiveTheSameBatches) {
  const FaultySamples dataset(8, {});
  for (const bool persistent : {true, false}) {
    Pipeline pipeline(
        dataset, Sampler(8, Order::Sequential, 0),
        {.global_batch = 4, .micro_batch = 4, .num_workers = 2, .prefetch_depth = 4, .persistent_workers = persistent});
    pipeline.next();
    EXPECT_THAT(pipeline.next().indices, ElementsAre(4, 5, 6, 7));
    const auto reads_ahead = [&] { return pipeline.samples_read() > 8; };
    if (persistent) {
      EXPECT_TRUE(welkin::tests::eventually(reads_ahead));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      EXPECT_FALSE(reads_ahead());
    }
    for (int64_t step = 0; step < 5; ++step) {
      EXPECT_EQ(pipeline.next().indices.front(), step % 2 == 0 ? 0 : 4) << persistent;
    }
    pipeline.resume({.epoch = 7, .step = 1});
    EXPECT_THAT(pipeline.next().indices, ElementsAre(4, 5, 6, 7));
    EXPECT_EQ(pipeline.next().epoch, 8);
  }
}

// What Gloo would do: the largest number of both, or nothing when all are alike.
class TwoRanks {
 public:
  std::vector<int64_t> agree(size_t rank, const std::vector<int64_t>& own) {
    std::unique_lock lock(mutex_);
    skips_.at(rank) = own;
    meet(lock);
    std::vector<int64_t> most = own;
    for (size_t i = 0; i < own.size(); ++i) most[i] = std::max(skips_[0].at(i), skips_[1].at(i));
    if (skips_[0] == skips_[1]) most.clear();
    meet(lock);
    return most;
  }

 private:
  void meet(std::unique_lock<std::mutex>& lock) {
    const int64_t meetings = meetings_;
    if (std::exchange(one_waits_, !one_waits_)) {
      ++meetings_;
      both_.notify_all();
    }
    both_.wait(lock, [&] { return meetings_ != meetings; });
  }

  std::mutex mutex_;
  std::condition_variable both_;
  bool one_waits_ = false;
  int64_t meetings_ = 0;
  std::array<std::vector<int64_t>, 2> skips_;
};

struct RankTook {
  std::vector<int64_t> indices;
  std::vector<float> first_values;
  std::vector<std::string> notes;
};

RankTook take_two_batches(TwoRanks& ranks, size_t rank, const FaultySamples& dataset, int64_t workers) {
  RankTook took;
  Pipeline pipeline(dataset, Sampler(8, Order::Sequential, 0),
                    {.global_batch = 4,
                     .micro_batch = 4,
                     .num_workers = workers,
                     .rules = {.bad_sample = BadSample::Skip},
                     .report = [&](const std::string& note) { took.notes.push_back(note); },
                     .agree = [&, rank](const std::vector<int64_t>& own) { return ranks.agree(rank, own); }});
  for (int step = 0; step < 2; ++step) {
    const Batch batch = pipeline.next();
    took.indices.insert(took.indices.end(), batch.indices.begin(), batch.indices.end());
    for (int64_t i = 0; i < 4; ++i) took.first_values.push_back(batch.input[i][0][0][0].item<float>());
  }
  return took;
}

// Sample 2 is bad for one rank and the one after it for the other: both end at 4, wherever each of them began.
TEST(SampleCheck, RanksThatReadTheSameSamplesSkipTheSameOnes) {
  const FaultySamples bad_for_first(8, {2, 6}), bad_for_second(8, {3});
  for (const int64_t workers : {0, 2}) {
    TwoRanks ranks;
    RankTook first, second;
    {
      const std::jthread other([&] { second = take_two_batches(ranks, 1, bad_for_second, workers); });
      first = take_two_batches(ranks, 0, bad_for_first, workers);
    }
    EXPECT_THAT(first.indices, ElementsAre(0, 1, 4, 4, 4, 5, 7, 7));
    EXPECT_EQ(second.indices, first.indices);
    EXPECT_THAT(first.first_values, ElementsAre(0, 1, 4, 4, 4, 5, 7, 7));
    EXPECT_EQ(second.first_values, first.first_values);
    EXPECT_THAT(second.notes, Contains(HasSubstr("a sample was skipped: index=2, reason=another rank could not read it")));
    EXPECT_THAT(second.notes, Contains(HasSubstr("a sample was skipped: index=3, reason=[data] a damaged sample: index=3")));
    EXPECT_THAT(first.notes, Contains(HasSubstr("a sample was skipped: index=6, reason=[data] a damaged sample")));
    EXPECT_THAT(first.notes, Contains(HasSubstr("a sample was skipped: index=3, reason=another rank could not read it")));
  }
}

// The first sample's read hangs until it is let go, as one of a file system that does not answer.
class HangingSamples : public FaultySamples {
 public:
  HangingSamples() : FaultySamples(4, {}) {}
  void read(const SamplePlan& plan, SampleView out) const override {
    const ReadMark mark(path_, 4096);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return let_go_ || plan.index != 0; });
    FaultySamples::read(plan, out);
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    let_go_ = true;
    changed_.notify_all();
  }

 private:
  std::filesystem::path path_ = "/far/away/1979.h5";
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool let_go_ = false;
};

TEST(SampleCheck, AStalledReadIsNamedAndWaitedFor) {
  HangingSamples dataset;
  std::vector<std::string> notes;
  Pipeline pipeline(
      dataset, Sampler(4, Order::Sequential, 0),
      {.global_batch = 2, .micro_batch = 2, .num_workers = 2, .stall_seconds = 0.05, .report = [&](const std::string& note) {
         notes.push_back(note);
         if (notes.size() == 2) dataset.let_go();
       }});
  EXPECT_THAT(pipeline.next().indices, ElementsAre(0, 1));
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_THAT(notes.front(), HasSubstr("[data] a read does not come back: path=/far/away/1979.h5, offset=4096, seconds=0."));
  EXPECT_THAT(notes.front(), HasSubstr(" of 2. Check the file system; the run waits."));
}

TEST(SampleCheck, AStalledReadOfTheStepsOwnThreadIsNamedToo) {
  HangingSamples dataset;
  std::vector<std::string> notes;  // of the thread that watches: read only when the read has come back
  Pipeline pipeline(
      dataset, Sampler(4, Order::Sequential, 0),
      {.global_batch = 2, .micro_batch = 2, .num_workers = 0, .stall_seconds = 0.05, .stalled = [&](const std::string& note) {
         notes.push_back(note);
         if (notes.size() == 2) dataset.let_go();
       }});
  EXPECT_THAT(pipeline.next().indices, ElementsAre(0, 1));
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_THAT(notes.back(), HasSubstr("[data] a read does not come back: path=/far/away/1979.h5, offset=4096, seconds=0."));
}

}  // namespace
}  // namespace welkin::data::tests
