// SPDX-License-Identifier: Apache-2.0
// A trained model for Python: opened as by `welkin evaluate RUN_FOLDER FLAGS`, called with torch tensors.
#pragma once

#include <torch/custom_class.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/python/native_dataset.h"
#include "config/schema/run_config.h"
#include "train/evaluate/trained_model.h"
#include "train/learn/registries.h"

namespace welkin::apps::python {

using Words = std::vector<std::string>;

// The built-in rows, then those of the plug-ins.
std::shared_ptr<train::Registries> registries_with(const Words& plugins);

class NativeModel : public torch::CustomClassHolder {
 public:
  // `words`: a run folder or package, then flags of `welkin evaluate`.
  NativeModel(const Words& words, const Words& plugins);

  // (B, C, ...) float32, normalised, on the model's device -> (B, C', ...). Has the input's gradient if the input requires one.
  at::Tensor forward(const at::Tensor& input) const;

  // {"config", "spec", "checkpoint", "run_folder", "step", "device", "batch_size", "split", "warnings"}.
  std::string facts() const;
  // Parameters, then buffers, by the names of a state dict. The tensors are the model's own.
  Words tensor_names() const;
  std::vector<at::Tensor> tensors() const;
  std::string scores() const;  // scores_json(): every sample of the split once
  c10::intrusive_ptr<NativeDataset> dataset(const std::string& split) const;

 private:
  void check_input(const at::Tensor& input) const;

  std::shared_ptr<train::Registries> registries_;
  Words warnings_;
  train::ModelChoice choice_;
  std::string split_;
  std::unique_ptr<train::TrainedModel> trained_;
};

}  // namespace welkin::apps::python
