// SPDX-License-Identifier: Apache-2.0
// Predictions as an HDF5 file in the data's own units: `input`, `target`, `prediction` (sample, channel, spatial...) float32 with
// the channels' names and units as attributes, `sample` (int64 index into the data set), and the input's coordinates `latitude`,
// `longitude`. Of a rollout, target and prediction are (sample, lead, channel, spatial...) and `lead` (int64) counts the steps of
// the data from the newest input.
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
  at::Tensor target_units(const at::Tensor& values) const;
  void write(const char* name, const at::Tensor& values);

  data::Hdf5File file_;
  const data::SampleSpec& spec_;
  bool has_leads_;
  int64_t written_ = 0;
};

// Normalised values (B, C, ...) -> the data's units, float32 on the CPU, contiguous. Without statistics only moved. The means may
// be of fewer channels than the values: computed channels (forcing) follow and stay as they are.
at::Tensor in_data_units(const at::Tensor& values, const std::vector<double>& mean, const std::vector<double>& deviation);

}  // namespace welkin::train
