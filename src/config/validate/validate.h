// SPDX-License-Identifier: Apache-2.0
// Checks a draft. Every function adds problems and goes on, so that all of them are reported together.
#pragma once

#include <cstdint>

#include "config/draft/draft.h"
#include "config/draft/known_names.h"

namespace welkin::config {

// Checks each value against its row of the schema. A wrong one is reported and put back to its default, so that it
// causes no second report.
void validate_rows(Draft& draft);
// Checks only the rows whose text names no value.
void validate_misnamed(Draft& draft);

// Checks values against each other, after derive().
void validate_model(Draft& draft);
void validate_data(Draft& draft);
void validate_loop(Draft& draft, int64_t world_size);
void validate_optimizer(Draft& draft);
void validate_health(Draft& draft);
void validate_rollout(Draft& draft);
void validate_online(Draft& draft);
void validate_names(Draft& draft, const KnownNames& known);

// One note that names all given keys that have no effect in this run.
void note_inert_keys(Draft& draft);

}  // namespace welkin::config
