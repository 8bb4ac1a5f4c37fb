// SPDX-License-Identifier: Apache-2.0
#include "train/coupling/field_stepper.h"

#include <ATen/ops/isnan.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "core/error.h"
#include "core/text.h"
#include "data/sample/sequences.h"
#include "data/sample/state_transform.h"
#include "train/coupling/field_layout.h"
#include "train/evaluate/persistence.h"

namespace welkin::train {
namespace {

[[noreturn]] void refuse_channel(const std::string& channel, const std::vector<std::string>& channels, const char* what) {
  const auto near = nearest(channel, channels);
  throw ConfigError("coupling", cat("the model has no such ", what, ": channel=", channel),
                    cat(near.empty() ? "It has: " : "Nearest: ", join(near.empty() ? channels : near, ", ")));
}

std::vector<ChannelScale> scales_of(const data::ArrayTransform& transform, size_t channels) {
  std::vector<ChannelScale> scales(channels);
  for (size_t i = 0; i < std::min(channels, transform.mean.size()); ++i)
    scales[i] = {.mean = transform.mean[i], .std = transform.std[i]};
  for (size_t i = 0; i < transform.log.size(); ++i) {
    scales[static_cast<size_t>(transform.log[i])].log_eps = transform.log_eps.empty() ? 1 : transform.log_eps[i];
  }
  return scales;
}

// Like in_file_units() (train/evaluate/prediction_file.h), in one pass: tensor operators cost more than a small field.
float in_units(float value, const ChannelScale& scale) {
  double wide = static_cast<double>(value) * scale.std;
  wide += scale.mean;
  return static_cast<float>(scale.log_eps == 0 ? wide : std::expm1(wide) * scale.log_eps);
}

template <typename Number>
void scatter(const float* from, const ChannelScale& scale, std::span<const int64_t> shape, std::span<const int64_t> strides,
             Number* out) {
  const int64_t inner = shape.size() == 1 ? 1 : std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < shape.front(); ++i, from += inner, out += strides.front()) {
    if (shape.size() == 1) {
      *out = static_cast<Number>(in_units(*from, scale));
    } else {
      scatter(from, scale, shape.subspan(1), strides.subspan(1), out);
    }
  }
}

// Counts of values that are no numbers, in one pass: tensor operators cost more than a small field.
struct Oddities {
  int64_t nan = 0, infinite = 0;
};

Oddities oddities_of(std::span<const float> values) {
  Oddities found;
  for (const float value : values) {
    found.nan += std::isnan(value) ? 1 : 0;
    found.infinite += std::isinf(value) ? 1 : 0;
  }
  return found;
}

// Copies one channel of (1, C, ...) into the caller's memory.
void give(const at::Tensor& values, int64_t channel, const ChannelScale& scale, const std::vector<int64_t>& shape,
          const FieldLayout& layout, void* out) {
  std::vector<int64_t> strides = layout.strides;
  if (strides.empty()) {
    strides.assign(shape.size(), 1);
    for (size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  }
  const float* from = values.const_data_ptr<float>() + channel * values.stride(1);
  if (layout.is_double) {
    scatter(from, scale, std::span(shape), std::span(strides), static_cast<double*>(out));
  } else {
    scatter(from, scale, std::span(shape), std::span(strides), static_cast<float*>(out));
  }
}

}  // namespace

FieldStepper::FieldStepper(const TrainedModel& model)
    : model_(model),
      spec_(model.dataset().spec()),
      shape_(spec_.input.shape.begin() + 1, spec_.input.shape.end()),
      earlier_(has_persistence(spec_) ? data::earlier_channels(spec_) : std::vector<int64_t>(spec_.target.channels.size(), -1)),
      ops_(data::channel_ops(data::input_transform(spec_), spec_.input.shape.front(), "input")),
      input_scale_(scales_of(data::input_transform(spec_), spec_.input.channels.size())),
      target_scale_(scales_of(data::target_transform(spec_), spec_.target.channels.size())),
      nan_policy_(data::nan_policy_for(spec_, model.config().data.nan_policy)),
      is_set_(spec_.input.channels.size(), false),
      has_nan_(is_set_) {
  std::vector<int64_t> shape = spec_.input.shape;
  shape.insert(shape.begin(), 1);
  input_ = at::zeros(shape, at::kFloat);
}

int64_t FieldStepper::channel_of(const std::string& channel) const {
  const auto found = std::find(spec_.input.channels.rbegin(), spec_.input.channels.rend(), channel);
  if (found == spec_.input.channels.rend()) refuse_channel(channel, spec_.input.channels, "input");
  return std::distance(found, spec_.input.channels.rend()) - 1;
}

void FieldStepper::set(const std::string& channel, const void* values, const FieldLayout& layout) {
  const int64_t number = channel_of(channel);
  const at::Tensor field = input_[0][number];
  field.copy_(view_of(const_cast<void*>(values), shape_, layout));  // from_blob takes no pointer to const
  const auto place = static_cast<size_t>(number);
  is_set_[place] = false;
  const std::span<float> points(field.data_ptr<float>(), static_cast<size_t>(field.numel()));
  const Oddities given = oddities_of(points);
  if (given.infinite > 0) {
    throw ConfigError("coupling",
                      cat("a field has values that are not finite in float32: channel=", channel, ", points=", given.infinite),
                      "Look at what has made them; a point without a value is NaN");
  }
  if (given.nan > 0 && !data::fills_points(nan_policy_)) {
    throw ConfigError(
        "coupling", cat("a field has points without a value, and the run takes none: channel=", channel, ", points=", given.nan),
        "Fill them, or train with nan_policy: hole");
  }
  const data::ChannelOp& op = ops_[place];
  data::apply(op, points.data(), field.numel());
  const Oddities left = op.is_identity() ? given : oddities_of(points);
  if (left.infinite + left.nan > given.nan) {
    throw ConfigError(
        "coupling",
        cat("a field has values that the run's transform makes no numbers of: channel=", channel,
            ", points=", left.infinite + left.nan - given.nan,
            op.log != 0 ? cat(", and the run takes ln(1 + x / ", op.log, "), which needs values above ", -op.log) : ""),
        "Give values as those of the run's files");
  }
  has_nan_[place] = given.nan > 0;
  is_set_[place] = true;
}

void FieldStepper::step() {
  std::vector<std::string> absent;
  for (size_t i = 0; i < is_set_.size(); ++i) {
    if (!is_set_[i]) absent.push_back(spec_.input.channels[i]);
  }
  if (!absent.empty()) {
    throw ConfigError("coupling", cat("inputs have no values yet: channels=", join(absent, ", ")),
                      "Set every input before the first step");
  }
  const auto integers = at::TensorOptions(at::kLong).device(model_.device());
  at::Tensor input = input_;
  if (std::ranges::count(has_nan_, true) > 0) {
    input = input_.clone();
    data::fill_holes({input.data_ptr<float>(), static_cast<size_t>(input.numel())}, spec_.input.shape.front(),
                     nan_policy_ == data::NanPolicy::Hole ? spec_.input_fill : std::vector<double>());
  }
  const at::Tensor prediction = model_.predict(
      input.to(model_.device()),
      {.seed = model_.config().loop.seed, .step = at::scalar_tensor(steps_, integers), .sample = at::zeros({1}, integers)});
  prediction_ = prediction.to(at::kCPU).contiguous();
  ++steps_;
}

void FieldStepper::get(const std::string& channel, void* values, const FieldLayout& layout) const {
  view_of(values, shape_, layout);  // throws if the strides do not fit
  const auto found = std::ranges::find(spec_.target.channels, channel);
  if (found == spec_.target.channels.end()) {
    const int64_t number = channel_of(channel);
    if (!is_set_[static_cast<size_t>(number)])
      throw ConfigError("coupling", cat("the input has no values yet: channel=", channel), "Set it before");
    return give(input_, number, input_scale_[static_cast<size_t>(number)], shape_, layout, values);
  }
  if (!prediction_.defined()) {
    throw ConfigError("coupling", cat("there is no prediction yet: channel=", channel), "Make a step before");
  }
  const auto number = std::distance(spec_.target.channels.begin(), found);
  give(prediction_, number, target_scale_[static_cast<size_t>(number)], shape_, layout, values);
}

void FieldStepper::advance() {
  if (!prediction_.defined())
    throw ConfigError("coupling", "there is no prediction that could be the next input", "Make a step before");
  if (spec_.newest_input_channel > 0) {
    throw ConfigError("coupling", cat("the model takes several times at once: history=", model_.config().data.history),
                      "Set all inputs of each step");
  }
  data::check_same_transforms(spec_, earlier_, "coupling", "a prediction is not the next input");
  for (size_t i = 0; i < earlier_.size(); ++i) {
    if (earlier_[i] < 0) continue;
    const at::Tensor next = prediction_[0][static_cast<int64_t>(i)], now = input_[0][earlier_[i]];
    now.copy_(has_nan_[static_cast<size_t>(earlier_[i])] ? at::where(at::isnan(now), now, next) : next);
  }
}

}  // namespace welkin::train
