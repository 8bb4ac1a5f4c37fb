// SPDX-License-Identifier: Apache-2.0
// A reference case of a model, read from its folder: what to build, what to feed it, and how close the results must be.
// Two kinds of folder: "model", and "parallel", of which the correct (serial) numbers are taken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/run_config.h"
#include "model/registry.h"
#include "train/reference/comparison.h"
#include "train/reference/formula.h"

namespace welkin::train::reference {

struct ModelTolerance {
  Bounds forward;    // output and activations
  Bounds gradients;  // by value
  double loss = 0;   // relative
  double trajectory_loss = 0;
  double trajectory_weights = 0;                 // relative L2 per tensor
  std::map<std::string, double> numbers;         // by name, where the case states one: "loss.l1_only"
  std::map<std::string, double> gradient_norms;  // relative; by parameter, "*" for the rest
  double noise_gradient = 1e-7;                  // absolute, of gradients that are zero in exact arithmetic
};

struct ModelCase {
  std::string name;
  std::filesystem::path folder, weights_folder, inputs_folder;
  std::string output_prefix;            // of names in outputs and trajectory: "correct." in parallel cases
  std::string gradient_file = "grads";  // stem
  config::RunConfig config;             // model, loss, optimizer and precision
  model::ModelShape shape;
  double loss_scale = 1.0;                       // of the reference's backward pass, divided out of its gradients
  std::string salt;                              // of tensors by formula
  std::map<std::string, FormulaTensor> formula;  // empty: weights and inputs are stored
  std::map<std::string, std::pair<int64_t, int64_t>> noise_only;  // parameters with exactly zero gradients, flat ranges
  std::vector<std::string> noise_patterns;                        // the same as patterns with one '*'
  ModelTolerance tolerance;
  std::optional<double> fp32_deviation;  // relative L2 of the output against the float32 case, where the case is of low precision

  NoiseRange noise_of(const std::string& parameter, int64_t size) const;
};

// The kind that a folder's meta.json states. DataError when there is none.
std::string case_kind(const std::filesystem::path& folder);

// DataError with the missing key when meta.json does not describe such a case.
ModelCase load_model_case(const std::filesystem::path& folder);

}  // namespace welkin::train::reference
