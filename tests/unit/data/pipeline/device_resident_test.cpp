// SPDX-License-Identifier: Apache-2.0
// What a GPU does with samples, through the CPU form of the same arithmetic: a batch that is turned and transformed where it
// lies, and batches cut from values that are held, equal the reading threads' bit for bit.
#include "data/pipeline/device_resident.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>

#include <cmath>
#include <numbers>
#include <semaphore>

#include "data/datasets/box_dataset.h"
#include "data/datasets/channel_statistics.h"
#include "data/datasets/era5_dataset.h"
#include "data/formats/npy_file.h"
#include "data/pipeline/pipeline.h"
#include "data/storage/read_watch.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kCrop = 4;

std::unique_ptr<BoxDataset> vector_boxes(const std::array<bool, 3>& periodic = {}) {
  std::vector<float> values = counting(4 * 7 * 6 * 5);
  for (float& value : values) value = std::sin(value) * 3;
  const BoxShape shape{4, {7, 6, 5}};
  BoxOptions options{.source = "box", .crop = kCrop, .num_samples = 64};
  options.periodic = periodic;
  options.augmentation = Augmentation::Octahedral;
  options.input_vectors = {1, 2, 3};
  options.input_clip = {-2.5, 2.75};
  options.target_log = {0};
  options.target_clip = {0, 2};
  options.out_channels = 2;
  return std::make_unique<BoxDataset>(make_box(shape, values), make_box(shape, values), options);
}

struct HostSample {
  at::Tensor input, target;
};

at::Tensor tensor_of(std::vector<float>& values, at::IntArrayRef shape) {
  return at::from_blob(values.data(), shape, at::TensorOptions(at::kFloat)).clone();
}

// By the reading threads' way; `turned` false: as it lies in the file.
HostSample read_on_host(const Dataset& dataset, const SamplePlan& plan, bool turned) {
  const auto values_of = [&](const ArraySpec& spec) {
    int64_t count = spec.shape[0];
    for (size_t d = 1; d < spec.shape.size(); ++d) count *= plan.region.extent[d - 1];
    return std::vector<float>(static_cast<size_t>(count));
  };
  const auto shape_of = [&](const ArraySpec& spec) {
    std::vector<int64_t> shape{spec.shape[0]};
    for (size_t d = 1; d < spec.shape.size(); ++d) shape.push_back(plan.region.extent[d - 1]);
    return shape;
  };
  const SampleSpec& spec = dataset.spec();
  std::vector<float> input = values_of(spec.input), target = values_of(spec.target);
  dataset.read(plan, {.input = input, .target = target, .transformed = turned, .turned = turned});
  return {tensor_of(input, shape_of(spec.input)), tensor_of(target, shape_of(spec.target))};
}

TEST(DeviceTransform, ABatchIsTurnedAndTransformedAsTheReadingThreadsDo) {
  const auto dataset = vector_boxes();
  std::vector<at::Tensor> raw_in, raw_out, wanted_in, wanted_out;
  std::vector<int32_t> orientations;
  for (int32_t index = 0; index < kNumOrientations; ++index) {
    SamplePlan plan = dataset->plan({.index = index, .draw = static_cast<uint64_t>(index)}, whole(dataset->spec()));
    plan.orientation = index;
    orientations.push_back(index);
    const HostSample wanted = read_on_host(*dataset, plan, true), raw = read_on_host(*dataset, plan, false);
    raw_in.push_back(raw.input), raw_out.push_back(raw.target);
    wanted_in.push_back(wanted.input), wanted_out.push_back(wanted.target);
  }
  const SampleSpec& spec = dataset->spec();
  const DeviceTransform input(input_transform(spec), 4, spec.input_vectors, c10::kCPU);
  const DeviceTransform target(target_transform(spec), 2, spec.target_vectors, c10::kCPU);
  EXPECT_TRUE(at::equal(input.apply(at::stack(raw_in), orientations), at::stack(wanted_in)));
  EXPECT_TRUE(at::equal(target.apply(at::stack(raw_out), orientations), at::stack(wanted_out)));
  EXPECT_FALSE(at::equal(at::stack(raw_in), at::stack(wanted_in)));
}

TEST(DeviceTransform, WhereNothingIsToDoNothingIsCopied) {
  const at::Tensor raw = at::full({2, 3, 4, 4, 4}, 1.0f);
  EXPECT_EQ(DeviceTransform({}, 3, {}, c10::kCPU).apply(raw, {0, 0}).data_ptr(), raw.data_ptr());
}

// Float16 and bfloat16, in and out, and an output whose channels lie last.
TEST(DeviceTransform, CastsAndLaysOut) {
  std::vector<float> values = counting(2 * 27);
  const at::Tensor source = tensor_of(values, {54});
  const ops::CropSource layout{.stride = {27, 9, 3, 1}, .edge = {3, 3, 3}};
  const DeviceTransform scale({.clip = {}, .log = {}, .mean = {1, 2}, .std = {2, 4}}, 2, {}, c10::kCPU);
  const ops::CropTables tables{.place = place_table({crop_place(0, {0, 0, 0}, 0)}, c10::kCPU),
                               .channel = channel_table(scale.turned_channels(0), 2, c10::kCPU),
                               .op = scale.ops()};
  const at::Tensor wanted = at::empty({1, 2, 3, 3, 3}, at::kFloat);
  ops::crop_samples(wanted, source, layout, tables);
  EXPECT_EQ(wanted[0][1][2][1][0].item<float>(), (27 + 18 + 3 - 2) / 4.0f);
  for (const at::ScalarType from : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const at::ScalarType to : {at::kFloat, at::kHalf, at::kBFloat16}) {
      const at::Tensor out = at::empty({1, 2, 3, 3, 3}, at::TensorOptions(to).memory_format(at::MemoryFormat::ChannelsLast3d));
      ops::crop_samples(out, source.to(from), layout, tables);
      EXPECT_TRUE(at::equal(out, wanted.to(to))) << from << " to " << to;
    }
  }
}

// What runs on a device for which there is no kernel of ours.
TEST(DeviceTransform, TheReferenceFormCutsAlike) {
  std::vector<float> values = counting(2 * 5 * 4 * 6);
  for (float& value : values) value = std::sin(value) * 3;
  const at::Tensor source = tensor_of(values, {240});
  const ops::CropSource layout{.stride = {120, 24, 6, 1}, .edge = {5, 4, 6}};
  const DeviceTransform transform({.clip = {-2, 2.5}, .log = {}, .mean = {0.1, 2}, .std = {0.3, 4}}, 2, {}, c10::kCPU);
  std::vector<ops::CropPlace> places;
  std::vector<int64_t> channels;
  for (int32_t index = 0; index < kNumOrientations; ++index) {
    places.push_back(crop_place(index % 2, {index % 5, index % 4, index % 6}, index));
    places.back().offset = 0;
    channels.push_back(ops::crop_channel(index % 2, index % 3 == 0));
    channels.push_back(ops::crop_channel(1, false));
  }
  const ops::CropTables tables{
      .place = place_table(places, c10::kCPU), .channel = channel_table(channels, 2, c10::kCPU), .op = transform.ops()};
  const at::Tensor wanted = at::empty({kNumOrientations, 2, 3, 4, 2}, at::kFloat), found = at::empty_like(wanted);
  ops::crop_samples(wanted, source, layout, tables);
  ops::crop_samples_reference(found, source, layout, tables);
  EXPECT_TRUE(at::equal(found, wanted));
}

void expect_equal_cuts(const Dataset& dataset, const std::vector<SamplePlan>& plans) {
  const DeviceResident resident(dataset, c10::kCPU, {});
  const DeviceResident::Arrays found = resident.cut(plans);
  for (size_t i = 0; i < plans.size(); ++i) {
    const HostSample wanted = read_on_host(dataset, plans[i], true);
    EXPECT_TRUE(at::equal(found.input[static_cast<int64_t>(i)], wanted.input)) << i;
    EXPECT_TRUE(at::equal(found.target[static_cast<int64_t>(i)], wanted.target)) << i;
  }
}

TEST(DeviceResident, CutsWrapAndTurnAsTheFilesDo) {
  for (const std::array<bool, 3>& periodic : {std::array{false, false, false}, std::array{true, true, true}}) {
    const auto dataset = vector_boxes(periodic);
    for (const Region& region : {whole(dataset->spec()), Region{.begin = {1, 0, 2}, .extent = {3, 4, 1}}}) {
      std::vector<SamplePlan> plans;
      for (int32_t index = 0; index < kNumOrientations; ++index) {
        plans.push_back(dataset->plan({.index = index, .draw = 7u + static_cast<uint64_t>(index)}, region));
        plans.back().orientation = index;
      }
      expect_equal_cuts(*dataset, plans);
    }
  }
}

class ResidentFields : public ::testing::Test {
 protected:
  ResidentFields() {
    std::filesystem::create_directory(folder_ / "years");
    write_field_file(folder_ / "years/1979.h5", {.steps = 7, .channels = 3});
    write_field_file(folder_ / "years/1980.h5", {.steps = 5, .channels = 3, .first = 1000, .chunked = true});
    options_.folder = folder_ / "years";
    options_.height = 3;
    options_.in_channels = 2;
    options_.history = 2;
    options_.means = folder_ / "means.npy";
    options_.stds = folder_ / "stds.npy";
    write_npy(options_.means, {1, 3, 1, 1}, std::vector<float>{10, 20, 30});
    write_npy(options_.stds, {1, 3, 1, 1}, std::vector<float>{3, 7, 11});
  }
  DataFolder folder_;
  Era5Options options_;
};

TEST_F(ResidentFields, StepsOfAllYearsAreCutAsTheFilesAre) {
  const Era5Dataset dataset(options_);
  for (const Region& region : {whole(dataset.spec()), Region{.begin = {1, 2, 0}, .extent = {2, 3, 1}}}) {
    std::vector<SamplePlan> plans;
    for (int64_t index = 0; index < dataset.size(); ++index) plans.push_back(dataset.plan({.index = index}, region));
    expect_equal_cuts(dataset, plans);
  }
}

TEST_F(ResidentFields, ChosenChannelsOfACropAreCutAsTheFilesAre) {
  options_.crop = {{1, 2}}, options_.height = 2, options_.width = 3;
  for (const auto& [in, out] : std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>{
           {{"channel2", "channel0"}, {"channel2"}}, {{"channel1"}, {"channel1", "channel0"}}, {{"channel2"}, {"channel0"}}}) {
    options_.in_names = in, options_.out_names = out;
    const Era5Dataset dataset(options_);
    std::vector<SamplePlan> plans;
    for (int64_t index = 0; index < dataset.size(); ++index)
      plans.push_back(dataset.plan({.index = index}, whole(dataset.spec())));
    expect_equal_cuts(dataset, plans);
  }
}

// The pipeline gives the same batches, in the middle of an epoch too, and reads nothing after it has begun.
TEST_F(ResidentFields, ThePipelineGivesTheSameBatches) {
  const Era5Dataset dataset(options_);
  PipelineOptions options{.global_batch = 3, .micro_batch = 2, .drop_last = false};
  Pipeline files(dataset, Sampler(dataset.size(), Order::Shuffled, 5), options);
  options.resident = true;
  Pipeline resident(dataset, Sampler(dataset.size(), Order::Shuffled, 5), options);
  EXPECT_EQ(resident.resident_bytes(), 12u * 3 * 4 * 6 * sizeof(float));
  EXPECT_EQ(resident.buffer_bytes(), 0u);
  const auto expect_alike = [&] {
    for (int i = 0; i < 13; ++i) {
      const Batch wanted = files.next(), found = resident.next();
      EXPECT_TRUE(at::equal(found.input, wanted.input));
      EXPECT_TRUE(at::equal(found.target, wanted.target));
      EXPECT_TRUE(at::equal(found.sample, wanted.sample));
      EXPECT_EQ(found.indices, wanted.indices);
      EXPECT_EQ(found.step_samples, wanted.step_samples);
      EXPECT_EQ(found.micro, wanted.micro);
      EXPECT_EQ(found.epoch, wanted.epoch);
    }
  };
  expect_alike();
  files.resume({.epoch = 3, .step = 1});
  resident.resume({.epoch = 3, .step = 1});
  expect_alike();
  const uint64_t read = dataset.bytes_requested();
  for (int i = 0; i < 10; ++i) resident.next();
  EXPECT_EQ(dataset.bytes_requested(), read);
}

TEST_F(ResidentFields, NanIsFoundWhileTheValuesAreRead) {
  Hdf5File file = Hdf5File::create(folder_ / "years/1980.h5");
  file.create_dataset("fields", {.shape = {5, 3, 4, 6}, .chunk = {}});
  std::vector<float> values = counting(5 * 3 * 4 * 6);
  values[24 * 4 + 2] = std::nanf("");
  file.write("fields", {0, 0, 0, 0}, {5, 3, 4, 6}, std::span<const float>(values));
  file.close();
  const Era5Dataset dataset(options_);
  EXPECT_THAT(
      [&] { DeviceResident(dataset, c10::kCPU, {.nan = NanPolicy::Error}); },
      ThrowsMessage<DataError>(AllOf(HasSubstr("values that are not finite: path="),
                                     HasSubstr("1980.h5, dataset=fields, step=1, channel=1 ("), HasSubstr("), values=1"))));
  std::vector<std::string> notes;
  const DeviceResident masked(dataset, c10::kCPU,
                              {.nan = NanPolicy::Mask, .report = [&](const std::string& note) { notes.push_back(note); }});
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes.front(), HasSubstr("masked with the channel's mean"));
  const auto found = masked.cut({dataset.plan({.index = 5}, whole(dataset.spec()))});  // input steps 0 and 1 of the second file
  EXPECT_EQ(found.input[0][3][0][2].item<float>(), 0.0f) << "the mean, normalised";
}

TEST_F(ResidentFields, AReadThatDoesNotComeBackIsNamedWhileTheValuesAreRead) {
  // A file system that comes back once somebody has heard of it.
  class StalledFields : public Era5Dataset {
   public:
    using Era5Dataset::Era5Dataset;
    std::binary_semaphore* heard = nullptr;
    void read_plane(int64_t array, int64_t channel, int64_t index, std::span<float> out) const override {
      const ReadMark mark(file(0).path, 4096);
      if (index == 3 && channel == 2) heard->acquire();
      Era5Dataset::read_plane(array, channel, index, out);
    }
  };
  StalledFields dataset(options_);
  std::binary_semaphore heard(0);
  dataset.heard = &heard;
  std::string told;
  const DeviceResident resident(dataset, c10::kCPU, {.stall_seconds = 0.02, .stalled = [&](const std::string& text) {
                                                       if (told.empty()) heard.release();
                                                       told = text;
                                                     }});
  EXPECT_THAT(told, AllOf(HasSubstr("a read does not come back: path="), HasSubstr("1979.h5, offset=4096, seconds=0."),
                          HasSubstr("reading_threads=1 of ")));
  EXPECT_GT(resident.bytes(), 0u);
}

TEST_F(ResidentFields, ComputedChannelsAreRefused) {
  class OneMore : public ExtraChannels {
   public:
    int64_t count() const override { return 1; }
    const std::vector<std::string>& names() const override { return names_; }
    void fill(int64_t, const Region&, std::span<float>) const override {}

   private:
    std::vector<std::string> names_{"sun"};
  };
  for (const char* year : {"1979", "1980"}) {
    write_field_file(folder_ / (std::string("years/") + year + ".h5"), {.steps = 4, .channels = 3, .time = {0, 60, 120, 180}});
  }
  const Era5Dataset dataset(options_, std::make_shared<OneMore>());
  EXPECT_THAT([&] { DeviceResident(dataset, c10::kCPU, {}); },
              ThrowsMessage<ConfigError>(HasSubstr("these data cannot be held on a device")));
}

}  // namespace
}  // namespace welkin::data::tests
