// SPDX-License-Identifier: Apache-2.0
// Samples cut by the GPU's kernel, run on the CPU, against the CPU's form: the same bits.
#include "ops/sample/sample_crop.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "device_on_cpu.h"
#include "gradient_check.h"

namespace welkin::ops {
namespace {

using CutSignature = void(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                          at::IntArrayRef, at::IntArrayRef);

// Three samples of a box of two channels: one as it lies, one turned and wrapped, one that runs backwards.
CropTables turned_tables(int64_t num_channels) {
  const std::vector<CropPlace> places{{.offset = 0, .first = {0, 0, 0}, .axis = {0, 1, 2}, .step = {1, 1, 1}},
                                      {.offset = 0, .first = {4, 3, 5}, .axis = {2, 0, 1}, .step = {1, 1, -1}},
                                      {.offset = 0, .first = {1, 3, 2}, .axis = {1, 2, 0}, .step = {-1, -1, 1}}};
  const double never = std::numeric_limits<double>::infinity();
  const std::vector<CropOp> ops{{.low = -0.5, .high = 0.7, .mean = 0.1, .std = 0.3},
                                {.low = -0.9, .high = never, .log = 1, .mean = 0.25, .std = 4, .narrow = 1}};
  const CropTables tables{.place = at::empty({3, kCropPlaceWords}, at::kLong),
                          .channel = at::empty({3, num_channels}, at::kLong),
                          .op = at::empty({num_channels, kCropOpWords}, at::kDouble)};
  std::copy(places.begin(), places.end(), reinterpret_cast<CropPlace*>(tables.place.mutable_data_ptr<int64_t>()));
  const std::vector<int64_t> channels{crop_channel(0, false), crop_channel(1, false), crop_channel(1, true),
                                      crop_channel(0, false), crop_channel(0, true),  crop_channel(1, true)};
  auto* own_ops = reinterpret_cast<CropOp*>(tables.op.mutable_data_ptr<double>());
  auto* own_channels = tables.channel.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < 3 * num_channels; ++i) {
    const int64_t sample = i / num_channels, c = i % num_channels;
    own_channels[i] = channels[static_cast<size_t>(2 * sample + c % 2)];
    own_ops[c] = ops[static_cast<size_t>(c % 2)];
  }
  return tables;
}

void expect_equal_bits(const CropSource& layout, int64_t elements, const std::vector<int64_t>& cut, at::ScalarType from,
                       at::ScalarType to, at::MemoryFormat format, int64_t num_channels = 2) {
  const CropTables tables = turned_tables(num_channels);
  const at::Tensor source = tests::test_values({elements}, 1).to(at::kFloat).to(from);
  const at::Tensor wanted = at::empty({3, num_channels, cut[0], cut[1], cut[2]}, at::TensorOptions(to).memory_format(format));
  const at::Tensor got = wanted.clone().fill_(-9);
  crop_samples(wanted, source, layout, tables);
  tests::call_device_kernel<CutSignature>("welkin::crop_samples", got, source, tables.place, tables.channel, tables.op,
                                          at::IntArrayRef(layout.stride), at::IntArrayRef(layout.edge));
  EXPECT_TRUE(at::equal(got, wanted)) << from << " to " << to;
}

TEST(SampleCutOfAGpu, HasTheBitsOfTheCpus) {
  const CropSource layout{.stride = {120, 24, 6, 1}, .edge = {5, 4, 6}};
  for (const at::ScalarType from : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const at::ScalarType to : {at::kFloat, at::kHalf, at::kBFloat16}) {
      for (const at::MemoryFormat format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast3d}) {
        expect_equal_bits(layout, 240, {4, 4, 4}, from, to, format);
      }
    }
  }
}

TEST(SampleCutOfAGpu, WhoseSidesAreSeveralTiles) {
  const CropSource layout{.stride = {int64_t{36} * 41 * 44, int64_t{41} * 44, 44, 1}, .edge = {36, 41, 44}};
  for (const at::MemoryFormat format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast3d}) {
    expect_equal_bits(layout, int64_t{2} * 36 * 41 * 44, {2, 36, 35}, at::kFloat, at::kBFloat16, format);
    expect_equal_bits(layout, int64_t{2} * 36 * 41 * 44, {34, 3, 33}, at::kFloat, at::kFloat, format);
  }
}

TEST(SampleCutOfAGpu, OfMoreChannelsThanATileHolds) {
  const CropSource layout{.stride = {120, 24, 6, 1}, .edge = {5, 4, 6}};
  for (const at::MemoryFormat format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast3d}) {
    expect_equal_bits(layout, 240, {4, 4, 4}, at::kFloat, at::kFloat, format, 19);
  }
}

TEST(SampleCutOfAGpu, OfASourceWhoseChannelsOrFirstAxisAreNext) {
  expect_equal_bits({.stride = {1, 48, 12, 2}, .edge = {5, 4, 6}}, 240, {4, 4, 4}, at::kFloat, at::kFloat,
                    at::MemoryFormat::Contiguous);
  expect_equal_bits({.stride = {120, 1, 5, 20}, .edge = {5, 4, 6}}, 240, {4, 4, 4}, at::kFloat, at::kFloat,
                    at::MemoryFormat::Contiguous);
}

}  // namespace
}  // namespace welkin::ops
