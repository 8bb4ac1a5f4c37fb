// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/prediction_file.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/tensor.h>

#include <limits>
#include <span>
#include <utility>

#include "core/error.h"

namespace welkin::train {
namespace {

std::span<const float> floats(const at::Tensor& values) {
  return {values.const_data_ptr<float>(), static_cast<size_t>(values.numel())};
}

at::Tensor wide_rescaled(const at::Tensor& values, const std::vector<double>& offset, const std::vector<double>& scale) {
  at::Tensor wide = values.detach().to(at::kCPU, at::kDouble).clone();
  if (offset.empty()) return wide;
  std::vector<int64_t> shape(static_cast<size_t>(values.dim()), 1);
  shape[1] = static_cast<int64_t>(offset.size());
  at::Tensor scaled = wide.narrow(1, 0, shape[1]);
  scaled.mul_(at::tensor(scale, at::kDouble).view(shape)).add_(at::tensor(offset, at::kDouble).view(shape));
  return wide;
}

}  // namespace

at::Tensor rescaled(const at::Tensor& values, const std::vector<double>& offset, const std::vector<double>& scale) {
  return wide_rescaled(values, offset, scale).to(at::kFloat).contiguous();
}

at::Tensor in_file_units(const at::Tensor& values, const data::ArrayTransform& transform) {
  at::Tensor wide = wide_rescaled(values, transform.mean, transform.std);
  for (size_t i = 0; i < transform.log.size(); ++i) {
    const double eps = transform.log_eps.empty() ? 1.0 : transform.log_eps[i];
    wide.select(1, transform.log[i]).expm1_().mul_(eps);
  }
  return wide.to(at::kFloat).contiguous();
}

PredictionWriter::PredictionWriter(const std::filesystem::path& path, const data::SampleSpec& spec, int64_t num_samples,
                                   const std::vector<int64_t>& leads)
    : file_(data::Hdf5File::create(path)), spec_(spec), has_leads_(!leads.empty()) {
  const auto num_leads = static_cast<int64_t>(leads.size());
  const data::Extents forecast = has_leads_ ? data::Extents{num_samples, num_leads} : data::Extents{num_samples};
  create("input", spec.input, {num_samples});
  create("target", spec.target, forecast);
  create("prediction", spec.target, forecast);
  describe("input", spec.input, spec.input_mean, spec.input_std);
  for (const char* name : {"target", "prediction"}) describe(name, spec.target, spec.target_mean, spec.target_std);
  set_text(
      "values",
      "as in the files of the data set: transform(x) in its unit = value * scale + offset; the normalisation by mean and std "
      "is undone");
  if (has_leads_) {
    file_.create_dataset("lead", {.type = data::Hdf5Type::Int64, .shape = {num_leads}, .chunk = {}});
    file_.write("lead", {0}, {num_leads}, std::span<const int64_t>(leads));
  }
  file_.create_dataset("sample", {.type = data::Hdf5Type::Int64, .shape = {num_samples}, .chunk = {}});
  for (const auto& [name, values] : {std::pair{"latitude", &spec.latitude}, std::pair{"longitude", &spec.longitude}}) {
    if (values->empty()) continue;
    const data::Extents extent = {static_cast<int64_t>(values->size())};
    file_.create_dataset(name, {.type = data::Hdf5Type::Float64, .shape = extent, .chunk = {}});
    file_.write(name, {0}, extent, std::span<const double>(*values));
  }
}

void PredictionWriter::create(const char* name, const data::ArraySpec& array, data::Extents leading) {
  leading.insert(leading.end(), array.shape.begin(), array.shape.end());
  file_.create_dataset(name, {.type = data::Hdf5Type::Float32, .shape = std::move(leading), .chunk = {}});
  file_.set_strings(name, "channels", array.channels);
  file_.set_strings(name, "units", array.units);
}

// One number per channel, also for computed channels, which have no statistics.
void PredictionWriter::describe(const char* name, const data::ArraySpec& array, const std::vector<double>& mean,
                                const std::vector<double>& deviation) {
  const size_t count = array.channels.size();
  std::vector<data::ChannelScaling> scaling = array.scaling;
  scaling.resize(count);
  std::vector<std::string> transforms;
  std::vector<double> offsets, scales, means = mean, deviations = deviation;
  for (const data::ChannelScaling& channel : scaling) {
    transforms.push_back(channel.transform);
    offsets.push_back(channel.offset);
    scales.push_back(channel.scale);
  }
  means.resize(count, 0.0);
  deviations.resize(count, 1.0);
  file_.set_strings(name, "transform", transforms);
  file_.set_numbers(name, "offset", offsets);
  file_.set_numbers(name, "scale", scales);
  file_.set_numbers(name, "mean", means);
  file_.set_numbers(name, "std", deviations);
}

void PredictionWriter::append(const at::Tensor& input, const at::Tensor& target, const at::Tensor& prediction,
                              const std::vector<int64_t>& samples) {
  write("input", in_file_units(input, data::input_transform(spec_)));
  write("target", target_values(target));
  // The model's values at points without a target mean nothing.
  write("prediction", target_values(prediction.masked_fill(at::isnan(target), std::numeric_limits<double>::quiet_NaN())));
  file_.write("sample", {written_}, {static_cast<int64_t>(samples.size())}, std::span<const int64_t>(samples));
  written_ += static_cast<int64_t>(samples.size());
}

at::Tensor PredictionWriter::target_values(const at::Tensor& values) const {
  const auto stored = [&](const at::Tensor& batch) { return in_file_units(batch, data::target_transform(spec_)); };
  if (!has_leads_) return stored(values);
  return stored(values.flatten(0, 1)).unflatten(0, values.sizes().slice(0, 2));
}

void PredictionWriter::write(const char* name, const at::Tensor& values) {
  data::Extents begin(static_cast<size_t>(values.dim()), 0);
  begin[0] = written_;
  file_.write(name, begin, values.sizes().vec(), floats(values));
}

void PredictionWriter::set_text(const std::string& name, const std::string& value) { file_.set_string("/", name, value); }

void PredictionWriter::close() { file_.close(); }

}  // namespace welkin::train
