// SPDX-License-Identifier: Apache-2.0
// Takes a State of any format as a checkpoint folder of ours, and as the first weights of a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint.h"
#include "train/interchange/state.h"

namespace welkin::train::interchange {

struct ImportOptions {
  bool as_stored = false;  // keep the element types; else floating-point tensors become float32, as training needs
  bool optimizer = true;   // if the file has one
  std::string config;      // YAML of the run that it shall belong to; empty: the file's own, or none
};

// Results of an import, for people.
struct ImportReport {
  int64_t iteration = 0;
  size_t model_tensors = 0, optimizer_tensors = 0;
  std::vector<std::string> notes;
};

// The step of the import: the one that the file states, else the optimizer's steps, else 0.
int64_t imported_iteration(const State& state, const ImportOptions& options);

// Writes the folder, which must not exist. Throws CheckpointError.
ImportReport import_state(const State& state, const ImportOptions& options, const std::filesystem::path& folder);

// Copies the weights of `state` into a model (model_setup.h: model_group), of which a rank may have parts (whole_tensors.h:
// with_places). Names and shapes must agree, except for wrappers' prefixes; floating-point types are converted. CheckpointError
// lists missing and surplus tensors and other shapes, before anything is changed.
void load_weights(const State& state, const CheckpointGroup& model);

// The shape of the whole tensor, of which a model's tensor may be a part.
std::vector<int64_t> whole_shape_of(const CheckpointTensor& tensor);
// Loads one of them. Parts of other ranks are not read.
void load_weight(const StateTensor& stored, const CheckpointTensor& tensor);

}  // namespace welkin::train::interchange
