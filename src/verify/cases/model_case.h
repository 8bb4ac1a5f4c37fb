// SPDX-License-Identifier: Apache-2.0
// A reference case of a model, read from its folder: the model to build, its inputs, and the bounds of its results. Two kinds
// of folder: "model", and "parallel", of which the correct (serial) numbers are taken.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/schema/run_config.h"
#include "model/registry.h"
#include "verify/cases/case_folder.h"
#include "verify/cases/comparison.h"
#include "verify/cases/formula.h"

namespace welkin::verify {

struct ModelTolerance {
  Bounds forward;    // output and activations
  Bounds gradients;  // by value
  double loss = 0;   // relative
  double trajectory_loss = 0;
  double trajectory_weights = 0;                 // relative L2 per tensor
  std::map<std::string, double> numbers;         // by name, if the case states one: "loss.l1_only"
  std::map<std::string, double> gradient_norms;  // relative; by parameter, "*" for the rest
  double noise_gradient = 1e-7;                  // absolute, of gradients that are zero in exact arithmetic
};

// The source of tensors: a file of a folder, or the formula that its meta.json states.
struct TensorSource {
  const CaseFolder* folder = nullptr;
  std::string stem;                              // of the file: "weights", "inputs"
  std::string salt;                              // of tensors by formula
  std::map<std::string, FormulaTensor> formula;  // empty: stored

  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;
  std::vector<int64_t> shape(const std::string& name) const;
  // DataError when it is absent, when its bits differ from the formula's, or when a value is not finite.
  at::Tensor get(const std::string& name) const;
};

struct ModelCase {
  const CaseFolder* folder = nullptr;
  std::vector<std::unique_ptr<const CaseFolder>> others;  // sources of a low-precision case's weights and inputs
  TensorSource weights, inputs;
  std::string output_prefix;            // of names in outputs and trajectory: "correct." in parallel cases
  std::string gradient_file = "grads";  // stem
  config::RunConfig config;             // model, loss, optimizer and precision
  model::ModelShape shape;
  std::vector<int64_t> input_shape, target_shape;
  std::optional<int64_t> num_parameters;
  double loss_scale = 1.0;  // of the reference's backward pass, divided out of its gradients
  std::map<std::string, std::pair<int64_t, int64_t>> noise_only;  // parameters with exactly zero gradients, flat ranges
  std::vector<std::string> noise_patterns;                        // the same as patterns with one '*'
  ModelTolerance tolerance;
  std::optional<double> fp32_deviation;  // relative L2 of the output against the float32 case, for a low-precision case

  bool low_precision() const { return fp32_deviation.has_value(); }
  NoiseRange noise_of(const std::string& parameter, int64_t size) const;
};

// DataError when meta.json does not describe such a case, or describes a model that is larger than the weights of the case.
// `folder` must outlive the case. JSON errors (nlohmann::json::exception) pass through: the caller knows the folder.
ModelCase load_model_case(const CaseFolder& folder);

// The model of a case with its weights, on the CPU. DataError when names or shapes are not the model's.
model::ModelPtr build_case_model(const ModelCase& c);

}  // namespace welkin::verify
