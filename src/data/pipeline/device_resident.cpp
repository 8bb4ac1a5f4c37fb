// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/device_resident.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "core/error.h"
#include "core/process/host.h"
#include "core/process/thread_pool.h"
#include "core/text.h"
#include "data/pipeline/stall_watch.h"
#include "data/storage/read_watch.h"

namespace welkin::data {
namespace {

constexpr int64_t kPieceBytes = int64_t{64} << 20;

const ResidentArrays& held_arrays(const Dataset& dataset) {
  if (const ResidentArrays* held = dataset.resident()) return *held;
  throw ConfigError(
      "data",
      "these data cannot be held on a device: resident=device, reason=some of their channels are computed or static, or "
      "the data set is a plug-in's that does not say how",
      "Choose --resident host");
}

at::Tensor empty_on_device(int64_t values, c10::Device device) {
  try {
    return at::empty({values}, at::TensorOptions(at::kFloat).device(device));
  } catch (const c10::OutOfMemoryError&) {
    throw DataError("data",
                    cat("the data do not fit in the device's memory: device=", device.str(),
                        ", needed=", format_bytes(static_cast<uint64_t>(values) * sizeof(float))),
                    "Choose --resident host, or take less data");
  }
}

// Counts the faulty values of a plane: those not finite, under Hole those infinite. Under Mask they become `mean`.
int64_t mend_plane(std::span<float> plane, NanPolicy nan, float mean) {
  int64_t count = 0;
  for (float& value : plane) {
    if (std::isfinite(value) || (nan == NanPolicy::Hole && std::isnan(value))) continue;
    ++count;
    if (nan == NanPolicy::Mask) value = mean;
  }
  return count;
}

}  // namespace

DeviceResident::DeviceResident(const Dataset& dataset, c10::Device device, const DeviceResidentOptions& options)
    : dataset_(dataset),
      held_(held_arrays(dataset)),
      device_(device),
      arrays_(held_.arrays()),
      input_(input_transform(dataset.spec()), dataset.spec().input.shape.at(0), dataset.spec().input_vectors, device),
      target_(target_transform(dataset.spec()), dataset.spec().target.shape.at(0), dataset.spec().target_vectors, device),
      fill_(dataset.spec(), options.nan == NanPolicy::Hole, device) {
  for (size_t a = 0; a < arrays_.size(); ++a) values_.push_back(load(static_cast<int64_t>(a), options));
}

uint64_t DeviceResident::bytes() const {
  uint64_t bytes = 0;
  for (const at::Tensor& values : values_) bytes += values.nbytes();
  return bytes;
}

void DeviceResident::report_nonfinite(const std::string& where, int64_t count, const DeviceResidentOptions& options) const {
  const std::string text = cat("values that are not finite: ", where, ", values=", count);
  if (options.nan == NanPolicy::Hole) throw DataError("data", text, "Infinity is no missing value: repair the files");
  if (options.nan == NanPolicy::Error) {
    throw DataError("data", text,
                    "Fill them (welkin data ingest --missing mean), or set nan_policy to mask (the mean) or hole (no weight)");
  }
  if (options.report) options.report(text);
}

at::Tensor DeviceResident::load(int64_t array, const DeviceResidentOptions& options) const {
  const ResidentArray& shape = arrays_[static_cast<size_t>(array)];
  const int64_t plane = shape.extent[1] * shape.extent[2], planes = shape.extent[0] * shape.channels;
  at::Tensor values = empty_on_device(planes * plane, device_);
  const int64_t at_once = std::clamp<int64_t>(kPieceBytes / (plane * static_cast<int64_t>(sizeof(float))), 1, planes);
  const at::Tensor piece = at::empty({at_once * plane}, at::TensorOptions(at::kFloat).pinned_memory(device_.is_cuda()));
  const std::vector<double>& means = shape.mean;
  std::vector<std::unique_ptr<ReadWatch>> watches;  // of the planes of a piece: a thread reads one after the other
  for (int64_t i = 0; i < at_once; ++i) watches.push_back(std::make_unique<ReadWatch>());
  const int threads = usable_cores();
  std::optional<StallWatch> watch;
  if (options.stall_seconds > 0 && options.stalled) watch.emplace(watches, threads, options.stall_seconds, options.stalled);
  ThreadPool pool({.num_threads = threads, .name = "hold"});
  MaskedValues masked;
  for (int64_t first = 0; first < planes; first += at_once) {
    const int64_t count = std::min(at_once, planes - first);
    std::vector<int64_t> bad(static_cast<size_t>(count), 0);
    pool.parallel_for(count, [&](int64_t i) {
      const int64_t channel = (first + i) % shape.channels;
      const std::span<float> out(static_cast<float*>(piece.data_ptr()) + i * plane, static_cast<size_t>(plane));
      const WatchThisThread watched(*watches[static_cast<size_t>(i)]);
      held_.read_plane(array, channel, (first + i) / shape.channels, out);
      const bool has_mean = channel < static_cast<int64_t>(means.size());
      const float mean = has_mean ? static_cast<float>(means[static_cast<size_t>(channel)]) : 0.0f;
      if (options.nan != NanPolicy::Off) bad[static_cast<size_t>(i)] = mend_plane(out, options.nan, mean);
    });
    for (int64_t i = 0; i < count; ++i) {
      const int64_t number = bad[static_cast<size_t>(i)];
      if (number == 0) continue;
      const std::string where = held_.plane_location(array, (first + i) % shape.channels, (first + i) / shape.channels);
      if (options.nan == NanPolicy::Mask) {
        masked.add({.first = where, .values = number, .samples = 1, .channels = {}});
      } else {
        report_nonfinite(where, number, options);
      }
    }
    values.narrow(0, first * plane, count * plane).copy_(piece.narrow(0, 0, count * plane));
  }
  if (masked.values > 0 && options.report) {
    options.report(cat("values that are not finite: values=", masked.values, ", planes=", masked.samples,
                       ", masked with the channel's mean; the first: ", masked.first));
  }
  return values;
}

DeviceResident::Arrays DeviceResident::cut(const std::vector<SamplePlan>& plans) const {
  std::vector<ResidentSample> samples;
  for (const SamplePlan& plan : plans) samples.push_back(held_.crops(plan));
  std::vector<const std::vector<ResidentCrop>*> input, target;
  for (const ResidentSample& sample : samples) input.push_back(&sample.input), target.push_back(&sample.target);
  const SampleSpec& spec = dataset_.spec();
  return {fill_.apply(crop_side(input, input_, spec.input)), crop_side(target, target_, spec.target)};
}

// One launch per cut of a sample: all samples have the same crops, of different cells.
at::Tensor DeviceResident::crop_side(const std::vector<const std::vector<ResidentCrop>*>& samples,
                                     const DeviceTransform& transform, const ArraySpec& spec) const {
  const auto count = static_cast<int64_t>(samples.size());
  std::vector<int64_t> shape{count};
  shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
  if (count == 0) return at::empty(shape, at::TensorOptions(at::kFloat).device(device_));
  const auto& extent = samples.front()->front().extent;
  for (size_t d = 2; d < shape.size(); ++d) shape[d] = extent[d - 2 + (shape.size() == 4 ? 1 : 0)];
  at::Tensor out = at::empty(shape, at::TensorOptions(at::kFloat).device(device_));
  const at::Tensor out_BCDHW = out.view({count, transform.channels(), extent[0], extent[1], extent[2]});
  for (size_t q = 0; q < samples.front()->size(); ++q) {
    const ResidentCrop& like = samples.front()->at(q);
    const ResidentArray& array = arrays_[static_cast<size_t>(like.array)];
    const int64_t plane = array.extent[1] * array.extent[2];
    const ops::CropSource source{.stride = {plane, array.channels * plane, array.extent[2], 1},
                                 .edge = {array.extent[0], array.extent[1], array.extent[2]}};
    std::vector<ops::CropPlace> places;
    std::vector<int64_t> channels;
    for (const auto* sample : samples) {
      const ResidentCrop& cut = sample->at(q);
      places.push_back(crop_place(0, cut.first, cut.orientation));
      const std::vector<int64_t> turned = transform.turned_channels(cut.orientation);
      for (int64_t c = 0; c < cut.num_channels; ++c) {
        channels.push_back(turned[static_cast<size_t>(cut.first_channel + c)] - 2 * cut.first_channel);
      }
    }
    ops::crop_samples(out_BCDHW.narrow(1, like.first_channel, like.num_channels), values_[static_cast<size_t>(like.array)],
                      source,
                      {.place = place_table(places, device_),
                       .channel = channel_table(channels, like.num_channels, device_),
                       .op = transform.ops().narrow(0, like.first_channel, like.num_channels)});
  }
  return out;
}

}  // namespace welkin::data
