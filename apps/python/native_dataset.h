// SPDX-License-Identifier: Apache-2.0
// A part of a run's data for Python: samples as tensors of their own, read in parallel.
#pragma once

#include <torch/custom_class.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"
#include "data/storage/channel_op.h"

namespace welkin::apps::python {

class NativeDataset : public torch::CustomClassHolder {
 public:
  // `source` owns what the data set refers to: rows of registries.
  NativeDataset(std::unique_ptr<data::Dataset> dataset, const config::RunConfig& config, std::shared_ptr<const void> source);

  int64_t size() const { return dataset_->size(); }
  std::string spec() const;  // spec_json()
  std::vector<std::string> warnings() const { return dataset_->warnings(); }
  // (B, C, ...) inputs and targets, new float32 tensors on the CPU. `normalized`: as in a run of one process, with the random
  // choices of the first epoch. Else the values of the files, NaN where values are missing.
  std::tuple<at::Tensor, at::Tensor> read(const std::vector<int64_t>& indices, bool normalized) const;
  std::string location(int64_t index) const;  // "path=..., step=..."

 private:
  data::SampleKey key_of(int64_t index) const;
  void read_one(int64_t index, bool normalized, float* input, float* target) const;

  std::shared_ptr<const void> source_;
  std::unique_ptr<data::Dataset> dataset_;
  uint64_t seed_;
  bool has_holes_;
  std::vector<data::ChannelOp> input_ops_, target_ops_;
};

}  // namespace welkin::apps::python
