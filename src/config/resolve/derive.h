// SPDX-License-Identifier: Apache-2.0
// Completes a draft: what follows from other values (model and data set from the tutorial, names that may be empty), synonyms,
// batch sizes, paths.
#pragma once

#include <cstdint>

#include "config/draft/draft.h"
#include "config/draft/known_names.h"

namespace welkin::config {

// Calls the functions below in the order of their dependencies. Adds problems for contradictions between synonyms.
void derive(Draft& draft, int64_t world_size, const KnownNames& known);

// model, dataset, qkv, loss, betas, schedule, data_loader_config, folder_rule, where they are not given.
void derive_defaults(Draft& draft, const KnownNames& known);
// --compat: that tutorial's schedule, augmentation and rules, except for those that are given. Without it: schedule cosine.
void derive_rules(Draft& draft);
// The layout of a U-Net's boxes, and what `deterministic` asks of cuDNN; a problem where a given key contradicts it.
void derive_backend(Draft& draft);
// lr and start_lr, tensor_parallel and row_parallel_size, amp_mode and enable_amp, num_epochs and num_iters: the one given
// later counts for both.
void resolve_synonyms(Draft& draft);
// global_batch_size from local_batch_size or the reverse.
void resolve_batch(Draft& draft, int64_t world_size);
// data_root and log_root for the prefixes /data and /logs, and for the roots that the file names; use_cache.
void rebind_paths(Draft& draft);

}  // namespace welkin::config
