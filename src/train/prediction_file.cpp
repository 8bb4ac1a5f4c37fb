// SPDX-License-Identifier: Apache-2.0
#include "train/prediction_file.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <span>

#include "core/error.h"

namespace welkin::train {
namespace {

std::span<const float> floats(const at::Tensor& values) {
  return {values.const_data_ptr<float>(), static_cast<size_t>(values.numel())};
}

data::Extents with_samples(int64_t num_samples, const std::vector<int64_t>& shape) {
  data::Extents extents = {num_samples};
  extents.insert(extents.end(), shape.begin(), shape.end());
  return extents;
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

PredictionWriter::PredictionWriter(const std::filesystem::path& path, const data::SampleSpec& spec, int64_t num_samples)
    : file_(data::Hdf5File::create(path)), spec_(spec) {
  create("input", spec.input, num_samples);
  create("target", spec.target, num_samples);
  create("prediction", spec.target, num_samples);
  file_.create_dataset("sample", {.type = data::Hdf5Type::Int64, .shape = {num_samples}, .chunk = {}});
  for (const auto& [name, values] : {std::pair{"latitude", &spec.latitude}, std::pair{"longitude", &spec.longitude}}) {
    if (values->empty()) continue;
    const data::Extents extent = {static_cast<int64_t>(values->size())};
    file_.create_dataset(name, {.type = data::Hdf5Type::Float64, .shape = extent, .chunk = {}});
    file_.write(name, {0}, extent, std::span<const double>(*values));
  }
}

void PredictionWriter::create(const char* name, const data::ArraySpec& array, int64_t num_samples) {
  file_.create_dataset(name, {.type = data::Hdf5Type::Float32, .shape = with_samples(num_samples, array.shape), .chunk = {}});
  file_.set_strings(name, "channels", array.channels);
  file_.set_strings(name, "units", array.units);
}

void PredictionWriter::append(const at::Tensor& input, const at::Tensor& target, const at::Tensor& prediction,
                              const std::vector<int64_t>& samples) {
  write("input", in_data_units(input, spec_.input_mean, spec_.input_std));
  write("target", in_data_units(target, spec_.target_mean, spec_.target_std));
  write("prediction", in_data_units(prediction, spec_.target_mean, spec_.target_std));
  file_.write("sample", {written_}, {static_cast<int64_t>(samples.size())}, std::span<const int64_t>(samples));
  written_ += static_cast<int64_t>(samples.size());
}

void PredictionWriter::write(const char* name, const at::Tensor& values) {
  data::Extents begin(static_cast<size_t>(values.dim()), 0);
  begin[0] = written_;
  file_.write(name, begin, values.sizes().vec(), floats(values));
}

void PredictionWriter::set_text(const std::string& name, const std::string& value) { file_.set_string("/", name, value); }

void PredictionWriter::close() { file_.close(); }

}  // namespace welkin::train
