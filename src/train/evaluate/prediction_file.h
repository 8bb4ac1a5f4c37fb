// SPDX-License-Identifier: Apache-2.0
// Predictions as an HDF5 file of values as the data set's files hold them: `input`, `target`, `prediction` (sample, channel,
// spatial...) float32 with attributes per channel: names, units, `transform`, `offset`, `scale` (as in the files: transform(x) in
// its unit = value * scale + offset) and `mean`, `std` (the normalisation, which is undone). Beside them `sample` (int64 index
// into the data set), and the input's coordinates `latitude`, `longitude`. Of a rollout, target and prediction are (sample, lead,
// channel, spatial...) and `lead` (int64) counts the steps of the data from the newest input.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/formats/hdf5/hdf5_file.h"
#include "data/sample/dataset.h"

namespace welkin::train {

// Writes to the path that it is given: the caller makes that a temporary one (core/file.h). Throws DataError.
class PredictionWriter {
 public:
  // `leads` in steps of the data; empty: no such axis.
  PredictionWriter(const std::filesystem::path& path, const data::SampleSpec& spec, int64_t num_samples,
                   const std::vector<int64_t>& leads = {});

  // Normalised batches (B, C, ...), of a rollout target and prediction (B, lead, C, ...), on any device; `samples` (B) indices.
  // Together at most num_samples.
  void append(const at::Tensor& input, const at::Tensor& target, const at::Tensor& prediction,
              const std::vector<int64_t>& samples);
  void set_text(const std::string& name, const std::string& value);  // an attribute of the file: provenance
  void close();

 private:
  void create(const char* name, const data::ArraySpec& array, data::Extents leading);
  void describe(const char* name, const data::ArraySpec& array, const std::vector<double>& mean,
                const std::vector<double>& deviation);
  at::Tensor target_values(const at::Tensor& values) const;
  void write(const char* name, const at::Tensor& values);

  data::Hdf5File file_;
  const data::SampleSpec& spec_;
  bool has_leads_;
  int64_t written_ = 0;
};

// (B, C, ...) -> values * scale + offset per channel, float32 on the CPU, contiguous. Without offsets only moved. They may be of
// fewer channels than the values: computed channels (forcing) follow and stay as they are.
at::Tensor rescaled(const at::Tensor& values, const std::vector<double>& offset, const std::vector<double>& scale);
// The same, and eps * (exp(x) - 1) of the channels of which log(1 + x / eps) was taken while reading: values as in the data set's
// files.
at::Tensor in_file_units(const at::Tensor& values, const data::ArrayTransform& transform);

}  // namespace welkin::train
