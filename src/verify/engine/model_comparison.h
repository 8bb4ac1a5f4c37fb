// SPDX-License-Identifier: Apache-2.0
// A case of a model against what an engine computes: every tensor that the case holds, in the order of the computation.
#pragma once

#include <vector>

#include "verify/engine/model_engine.h"

namespace welkin::verify {

// Rows in the order forward pass, loss, gradients from the output back, trajectory: the first failed row is the first to deviate.
// A different `amp_mode` than the case's own is judged by derived bounds, forward and loss alone (docs/reference/numerics.md).
std::vector<ComparisonRow> compare_model_case(const ModelCase& c, ModelEngine& engine, const VerifyOptions& options);

}  // namespace welkin::verify
