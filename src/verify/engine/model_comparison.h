// SPDX-License-Identifier: Apache-2.0
// Compares a case of a model with an engine's results: every tensor of the case, in the order of the computation.
#pragma once

#include <vector>

#include "verify/engine/model_engine.h"

namespace welkin::verify {

// Rows in the order forward pass, loss, gradients from the output back, trajectory: the first failed row deviates first.
// Another `amp_mode` than the case's is judged by derived bounds, for forward and loss alone (docs/reference/numerics.md).
std::vector<ComparisonRow> compare_model_case(const ModelCase& c, ModelEngine& engine, const VerifyOptions& options);

}  // namespace welkin::verify
