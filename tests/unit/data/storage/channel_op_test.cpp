// SPDX-License-Identifier: Apache-2.0
#include "data/storage/channel_op.h"

#include <ATen/ops/from_blob.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "data/datasets/box_dataset.h"
#include "data/datasets/channel_statistics.h"
#include "data/datasets/era5_dataset.h"
#include "data/formats/array_file.h"
#include "data/formats/npy_file.h"
#include "data/pipeline/device_transform.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ChannelOp, SignThenClipThenLogThenScale) {
  std::vector<float> values{-5, 0, 3, 100};
  apply({.negated = true, .low = -4, .high = 7, .log = false, .mean = 1, .std = 2}, values.data(), 4);
  EXPECT_THAT(values, ElementsAre((5 - 1) / 2.0f, -0.5f, (-3 - 1) / 2.0f, (-4 - 1) / 2.0f));
  values = {0, 1, 1e9f, std::nanf("")};
  apply({.high = 100, .log = true}, values.data(), 4);
  EXPECT_THAT(std::span(values).first(3), ElementsAre(0.0f, std::log1p(1.0f), std::log1p(100.0f)));
  EXPECT_TRUE(std::isnan(values[3])) << "what is not finite is not hidden";
}

// The one pass from a mapping gives the bits of a copy and what follows it, wherever rows begin and end.
TEST(ChannelOp, ACopyInOnePassHasTheSameBits) {
  std::vector<float> from = counting(9000);
  for (float& value : from) value = 250.0f + value * 0.0137f;
  from[3] = std::nanf("");
  for (const ChannelOp& op :
       {ChannelOp{.mean = 271.5, .std = 0.75}, ChannelOp{.mean = 271.3, .std = 7.1}, ChannelOp{},
        ChannelOp{.low = 251, .high = 300, .log = true, .mean = 5.5, .std = 0.25}, ChannelOp{.negated = true}}) {
    for (const size_t begin : {0u, 1u, 3u, 8u}) {
      for (const size_t to_begin : {0u, 1u, 5u}) {
        for (const size_t count : {0u, 1u, 7u, 8u, 17u, 64u, 4096u, 8900u}) {
          std::vector<float> wanted(from.begin() + static_cast<std::ptrdiff_t>(begin),
                                    from.begin() + static_cast<std::ptrdiff_t>(begin + count));
          apply(op, wanted.data(), static_cast<int64_t>(count));
          std::vector<float> found(to_begin + count + 1, -1.0f);
          const auto is_same = [&] {
            return count == 0 || std::memcmp(found.data() + to_begin, wanted.data(), count * sizeof(float)) == 0;
          };
          copy_applied(op, from.data() + begin, found.data() + to_begin, static_cast<int64_t>(count));
          EXPECT_TRUE(is_same()) << begin << " " << to_begin << " " << count;
          for (size_t i = 0; i < count; ++i) wanted[i] = from[begin + i] == from[6000] ? std::nanf("") : from[begin + i];
          apply(op, wanted.data(), static_cast<int64_t>(count));
          copy_applied(op, from.data() + begin, found.data() + to_begin, static_cast<int64_t>(count), from[6000]);
          EXPECT_TRUE(is_same()) << "missing, " << begin << " " << to_begin << " " << count;
          EXPECT_EQ(found.back(), -1.0f);
        }
      }
    }
  }
}

TEST(ChannelOp, NothingIsTheIdentity) {
  EXPECT_TRUE(ChannelOp{}.is_identity());
  EXPECT_FALSE((ChannelOp{.high = 3}.is_identity()));
  EXPECT_TRUE(ArrayTransform{}.is_identity());
}

TEST(ChannelOp, WhatDoesNotFitIsAnError) {
  EXPECT_THAT(
      [] {
        channel_ops({.clip = {3, 1}, .log = {}, .mean = {}, .std = {}}, 2, "input");
      },
      ThrowsMessage<ConfigError>(HasSubstr("[data] no range to clip to: array=input, clip=[3, 1]. Give the lowest")));
  EXPECT_THAT(
      [] { channel_ops({.clip = {}, .log = {2}, .mean = {}, .std = {}}, 2, "target"); },
      ThrowsMessage<ConfigError>(HasSubstr("[data] a channel that there is not: array=target, log_channel=2, channels=2.")));
}

struct Sample {
  std::vector<float> input, target;
};

int64_t product(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

Sample read_sample(const Dataset& dataset, SampleKey key, bool transformed) {
  const SampleSpec& spec = dataset.spec();
  Sample sample{std::vector<float>(static_cast<size_t>(product(spec.input.shape))),
                std::vector<float>(static_cast<size_t>(product(spec.target.shape)))};
  dataset.read(dataset.plan(key, whole(spec)), {sample.input, sample.target, transformed});
  return sample;
}

void transform(std::vector<float>& values, const ArrayTransform& transform, int64_t channels) {
  const auto ops = channel_ops(transform, channels, "test");
  const auto plane = static_cast<int64_t>(values.size()) / channels;
  for (int64_t c = 0; c < channels; ++c) apply(ops[static_cast<size_t>(c)], values.data() + c * plane, plane);
}

// What is read in one pass equals, bit for bit, what is read and transformed afterwards.
void expect_fused_equals_separate(const Dataset& dataset, uint64_t draws) {
  ASSERT_TRUE(dataset.transforms());
  const SampleSpec& spec = dataset.spec();
  for (uint64_t draw = 0; draw < draws; ++draw) {
    const SampleKey key{static_cast<int64_t>(draw) % dataset.size(), draw * 7919};
    const Sample fused = read_sample(dataset, key, true);
    Sample separate = read_sample(dataset, key, false);
    transform(separate.input, input_transform(spec), spec.input.shape[0]);
    transform(separate.target, target_transform(spec), spec.target.shape[0]);
    EXPECT_EQ(fused.input, separate.input) << draw;
    EXPECT_EQ(fused.target, separate.target) << draw;
  }
}

// Turned crops of a box whose channels 1 to 3 are a vector.
TEST(ChannelOp, BoxesAreTransformedInTheCopy) {
  const auto make = [](int64_t channels) {
    std::vector<float> values = counting(channels * 1000);
    for (float& value : values) value = std::sin(value) * 10;
    return make_box({channels, {10, 10, 10}}, std::move(values));
  };
  BoxOptions options{.source = "test", .crop = 4, .num_samples = 100};
  options.input_vectors = {1, 2, 3};
  options.input_clip = {-2, 8};
  options.target_log = {0};
  options.target_clip = {0, 5};
  expect_fused_equals_separate(BoxDataset(make(4), make(2), options), 60);
}

TEST(ChannelOp, FieldsAreTransformedWhileTheyAreRead) {
  const DataFolder folder;
  write_npy(folder / "means.npy", {1, 2, 1, 1}, std::vector<float>{3, -1});
  write_npy(folder / "stds.npy", {1, 2, 1, 1}, std::vector<float>{2, 0.3f});
  for (const bool chunked : {false, true}) {
    std::filesystem::create_directory(folder / (chunked ? "b" : "a"));
    write_field_file(folder / (chunked ? "b/1.h5" : "a/1.h5"), {.steps = 5, .height = 6, .width = 8, .chunked = chunked});
    Era5Options options{.folder = folder / (chunked ? "b" : "a"), .height = 4, .width = 6, .history = 2};
    options.means = folder / "means.npy", options.stds = folder / "stds.npy";
    options.input_log = {1};
    options.target_clip = {10, 200};
    const Era5Dataset dataset(options);
    expect_fused_equals_separate(dataset, 6);
    EXPECT_THAT(dataset.spec().input_log, ElementsAre(1, 3)) << "the channel in both input steps";
    options.hold = true;
    const Era5Dataset held(options);
    for (int64_t i = 0; i < held.size(); ++i) {
      EXPECT_EQ(read_sample(held, {i}, true).input, read_sample(dataset, {i}, true).input);
    }
    EXPECT_EQ(held.bytes_requested(), 0u);
  }
}

// The device's form, on the CPU.
TEST(ChannelOp, TheDeviceTransformsAlike) {
  const ArrayTransform wanted{.clip = {-3, 40}, .log = {1}, .mean = {1, 0.5}, .std = {3, 0.7}};
  std::vector<float> host = counting(2 * 12), device = host;
  transform(host, wanted, 2);
  const at::Tensor raw = at::from_blob(device.data(), {1, 2, 3, 4}, at::TensorOptions(at::kFloat));
  const at::Tensor values = DeviceTransform(wanted, 2, {}, c10::kCPU).apply(raw, {0});
  const auto* found = values.const_data_ptr<float>();
  for (size_t i = 0; i < host.size(); ++i) EXPECT_EQ(found[i], host[i]) << i;
}

}  // namespace
}  // namespace welkin::data::tests
