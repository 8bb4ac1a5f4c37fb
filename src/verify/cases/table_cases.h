// SPDX-License-Identifier: Apache-2.0
// Cases with tables instead of a model. Each function compares everything in its folder: rows named "tutorial ..." are the
// tutorials' numbers, defects included, reproduced by the rules that `--compat` selects; the others are Welkin's own. JSON
// errors (nlohmann::json::exception) pass through.
#pragma once

#include <vector>

#include "verify/cases/case_folder.h"
#include "verify/cases/verify_options.h"

namespace welkin::verify {

using Rows = std::vector<ComparisonRow>;

Rows verify_adam(const CaseFolder& folder, const VerifyOptions& options);            // optimizer alone, dynamic loss scale
Rows verify_optimizer(const CaseFolder& folder, const VerifyOptions& options);       // any optimizer on several parameters
Rows verify_schedules(const CaseFolder& folder, const VerifyOptions& options);       // learning rate at every step
Rows verify_losses(const CaseFolder& folder, const VerifyOptions& options);          // losses with gradients, metrics
Rows verify_era5_pairs(const CaseFolder& folder, const VerifyOptions& options);      // pair selection, normalisation, orders
Rows verify_nbody_crops(const CaseFolder& folder, const VerifyOptions& options);     // crops, orientations
Rows verify_rank_groups(const CaseFolder& folder, const VerifyOptions& options);     // process groups of a mesh
Rows verify_splits(const CaseFolder& folder, const VerifyOptions& options);          // a length over parts
Rows verify_unpatchify(const CaseFolder& folder, const VerifyOptions& options);      // axis order of patches
Rows verify_initialisation(const CaseFolder& folder, const VerifyOptions& options);  // counts and distributions

}  // namespace welkin::verify
