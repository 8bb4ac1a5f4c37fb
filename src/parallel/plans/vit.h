// SPDX-License-Identifier: Apache-2.0
// The plan of the vision transformer over tp, and over cp, h and w.
#pragma once

#include <cstdint>

#include "parallel/plans/plan.h"

namespace welkin::parallel {

struct LayoutOptions {
  bool sequence_parallel = false;  // norms, dropout and residuals on tokens that are split over tp too
  ContextMode context_mode = ContextMode::AllGather;
  // Each context-parallel rank reads, embeds and scores only its own tokens. false: all tokens, as in DL4SCI25.
  bool sharded_io = false;
};

struct VitLayout {
  int64_t num_tokens = 0;
  int64_t num_heads = 0;
  bool joint_qkv = false;
  int64_t mlp_width = 0;  // 0: not checked
  double dropout = 0.0;
  int64_t tokens_per_row = 0;  // of the grid of patches; needed where the input is split
};

// The rows for this mesh. ConfigError before anything runs if heads, hidden features or tokens cannot be split, with
// the sizes that work.
Plan vit_plan(const VitLayout& vit, const Mesh& mesh, const LayoutOptions& options);

}  // namespace welkin::parallel
