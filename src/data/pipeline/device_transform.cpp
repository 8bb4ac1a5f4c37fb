// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/device_transform.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "data/sample/orientation.h"

namespace welkin::data {
namespace {

template <typename T>
at::Tensor table_on(const T* rows, at::IntArrayRef sizes, at::ScalarType type, c10::Device device) {
  at::Tensor table = at::empty(sizes, at::TensorOptions(type).pinned_memory(device.is_cuda()));
  std::memcpy(table.data_ptr(), rows, table.nbytes());
  return device.is_cpu() ? table : table.to(device, /*non_blocking=*/true);
}

ops::CropOp cut_op(const ChannelOp& op) {
  const auto is_float = [](double value) { return static_cast<double>(static_cast<float>(value)) == value; };
  return {.low = op.low,
          .high = op.high,
          .log = op.log,
          .mean = op.mean,
          .std = op.std,
          .narrow = is_float(op.mean) && is_float(op.std) ? 1.0 : 0.0};
}

}  // namespace

at::Tensor place_table(const std::vector<ops::CropPlace>& places, c10::Device device) {
  return table_on(places.data(), {static_cast<int64_t>(places.size()), ops::kCropPlaceWords}, at::kLong, device);
}

at::Tensor channel_table(const std::vector<int64_t>& rows, int64_t channels, c10::Device device) {
  return table_on(rows.data(), {static_cast<int64_t>(rows.size()) / channels, channels}, at::kLong, device);
}

ops::CropPlace crop_place(int64_t offset, const std::array<int64_t, 3>& first, int32_t orientation) {
  const Orientation& turn = data::orientation(orientation);
  ops::CropPlace place;
  place.offset = offset;
  for (size_t a = 0; a < 3; ++a) {
    place.first[a] = first[a];
    place.axis[a] = turn.axis[a];
    place.step[a] = turn.flip[a] ? -1 : 1;
  }
  return place;
}

DeviceFill::DeviceFill(const SampleSpec& spec, bool holes, c10::Device device) : holes_(holes) {
  if (!holes || spec.input_fill.empty()) return;
  const std::vector<float> fill(spec.input_fill.begin(), spec.input_fill.end());
  std::vector<int64_t> sizes(spec.input.shape.size(), 1);
  sizes.front() = static_cast<int64_t>(fill.size());
  fill_ = table_on(fill.data(), sizes, at::kFloat, device);
}

at::Tensor DeviceFill::apply(const at::Tensor& input) const {
  if (!holes_) return input;
  const at::Tensor is_hole = at::isnan(input);
  return fill_.defined() ? at::where(is_hole, fill_, input) : input.masked_fill(is_hole, 0);
}

DeviceTransform::DeviceTransform(const ArrayTransform& transform, int64_t channels, std::vector<int64_t> vectors,
                                 c10::Device device)
    : channels_(channels), vectors_(std::move(vectors)) {
  std::vector<ops::CropOp> rows;
  for (const ChannelOp& op : channel_ops(transform, channels, "device")) {
    is_identity_ = is_identity_ && op.is_identity();
    rows.push_back(cut_op(op));
  }
  ops_ = table_on(rows.data(), {channels, ops::kCropOpWords}, at::kDouble, device);
}

std::vector<int64_t> DeviceTransform::turned_channels(int32_t orientation) const {
  const Orientation& turn = data::orientation(orientation);
  std::vector<int64_t> row;
  for (int64_t c = 0; c < channels_; ++c) row.push_back(ops::crop_channel(c, false));
  for (size_t i = 0; i < vectors_.size(); ++i) {
    const size_t component = i % 3, triple = i - component;
    row[static_cast<size_t>(vectors_[i])] =
        ops::crop_channel(vectors_[triple + static_cast<size_t>(turn.axis[component])], turn.flip[component]);
  }
  return row;
}

at::Tensor DeviceTransform::apply(const at::Tensor& raw, const std::vector<int32_t>& orientations) const {
  const bool turns = std::ranges::any_of(orientations, [](int32_t orientation) { return orientation != 0; });
  if ((is_identity_ && !turns) || raw.numel() == 0) return raw;
  const int64_t samples = raw.size(0);
  const std::array<int64_t, 3> extent{raw.dim() == 5 ? raw.size(2) : 1, raw.size(-2), raw.size(-1)};
  WELKIN_CHECK(raw.is_contiguous() && raw.size(1) == channels_ && static_cast<int64_t>(orientations.size()) == samples,
               "a batch and its orientations");
  WELKIN_CHECK(!turns || (extent[0] == extent[1] && extent[1] == extent[2]), "only cubes are turned on the device");
  const int64_t volume = extent[0] * extent[1] * extent[2];
  ops::CropSource source{.stride = {volume, extent[1] * extent[2], extent[2], 1}, .edge = {extent[0], extent[1], extent[2]}};
  std::vector<ops::CropPlace> places;
  std::vector<int64_t> channels;
  for (int64_t b = 0; b < samples; ++b) {
    const int32_t index = orientations[static_cast<size_t>(b)];
    const Orientation& turn = data::orientation(index);
    std::array<int64_t, 3> first{};
    for (size_t a = 0; a < 3; ++a) {
      const auto axis = static_cast<size_t>(turn.axis[a]);
      first[axis] = turn.flip[a] ? extent[axis] - 1 : 0;
    }
    places.push_back(crop_place(b * channels_ * volume, first, index));
    std::ranges::copy(turned_channels(index), std::back_inserter(channels));
  }
  at::Tensor out = at::empty_like(raw);
  ops::crop_samples(
      out.view({samples, channels_, extent[0], extent[1], extent[2]}), raw.view({-1}), source,
      {.place = place_table(places, raw.device()), .channel = channel_table(channels, channels_, raw.device()), .op = ops_});
  return out;
}

}  // namespace welkin::data
