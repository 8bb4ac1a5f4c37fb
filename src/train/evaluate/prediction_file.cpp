// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/prediction_file.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <span>
#include <utility>

#include "core/error.h"

namespace welkin::train {
namespace {

std::span<const float> floats(const at::Tensor& values) {
  return {values.const_data_ptr<float>(), static_cast<size_t>(values.numel())};
}

}  // namespace

at::Tensor in_data_units(const at::Tensor& values, const std::vector<double>& mean, const std::vector<double>& deviation) {
  at::Tensor wide = values.detach().to(at::kCPU, at::kDouble).clone();
  if (!mean.empty()) {
    std::vector<int64_t> shape(static_cast<size_t>(values.dim()), 1);
    shape[1] = static_cast<int64_t>(mean.size());
    at::Tensor scaled = wide.narrow(1, 0, shape[1]);
    scaled.mul_(at::tensor(deviation, at::kDouble).view(shape)).add_(at::tensor(mean, at::kDouble).view(shape));
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

void PredictionWriter::append(const at::Tensor& input, const at::Tensor& target, const at::Tensor& prediction,
                              const std::vector<int64_t>& samples) {
  write("input", in_data_units(input, spec_.input_mean, spec_.input_std));
  write("target", target_units(target));
  write("prediction", target_units(prediction));
  file_.write("sample", {written_}, {static_cast<int64_t>(samples.size())}, std::span<const int64_t>(samples));
  written_ += static_cast<int64_t>(samples.size());
}

at::Tensor PredictionWriter::target_units(const at::Tensor& values) const {
  if (!has_leads_) return in_data_units(values, spec_.target_mean, spec_.target_std);
  return in_data_units(values.flatten(0, 1), spec_.target_mean, spec_.target_std).unflatten(0, values.sizes().slice(0, 2));
}

void PredictionWriter::write(const char* name, const at::Tensor& values) {
  data::Extents begin(static_cast<size_t>(values.dim()), 0);
  begin[0] = written_;
  file_.write(name, begin, values.sizes().vec(), floats(values));
}

void PredictionWriter::set_text(const std::string& name, const std::string& value) { file_.set_string("/", name, value); }

void PredictionWriter::close() { file_.close(); }

}  // namespace welkin::train
