// SPDX-License-Identifier: Apache-2.0
// A case of kind "parallel" on the ranks that it names: the model is split by its plan, and every value is gathered to a whole
// before it is compared. Every rank asks for the same values in the same order, and gets the same.
#pragma once

#include <cstdint>
#include <memory>

#include "parallel/comm/mesh_groups.h"
#include "verify/engine/model_engine.h"

namespace welkin::verify {

// The ranks that a case is written for: tp x cp x dp of its meta.json.
int64_t ranks_of_case(const CaseFolder& folder);

// DataError when the case does not fit the number of ranks.
std::unique_ptr<ModelEngine> many_process_engine(const ModelCase& c, const CaseRanks& ranks);

}  // namespace welkin::verify
