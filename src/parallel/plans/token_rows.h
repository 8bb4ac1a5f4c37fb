// SPDX-License-Identifier: Apache-2.0
// Shared by the plans of models of patches: the axes over which tokens are split, and the split of the input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/mesh/mesh.h"
#include "parallel/plans/plan.h"
#include "parallel/plans/vit.h"

namespace welkin::parallel {

struct TokenAxes {
  // The axes that split the context: cp, those that cut the field into blocks, or both.
  AxisSet context = Axis::Cp;
  bool is_input_split = false;   // over `context`: a member reads, embeds and scores only its own tokens
  std::vector<Axis> inner = {};  // the axes of SplitTokens

  int64_t ranks(const Mesh& mesh) const { return mesh.size(context); }
};

struct TokenField {
  int64_t num_tokens = 0;
  int64_t columns = 0;  // of the grid of patches
  double dropout = 0.0;
};

// ConfigError when there are fewer tokens, or rows or columns of blocks, than ranks to share them; and for dropout on tokens of
// such blocks that sequence_parallel splits: what is left of a block is no rectangle, for which masks are drawn.
TokenAxes token_axes(const TokenField& field, const Mesh& mesh, const LayoutOptions& options);

// Adds the rows of the input's sites if the input is split. `with_positions`: the model has a site "positions".
void add_split_input(Plan& plan, const TokenAxes& axes, bool with_positions);

// ConfigError if an extent does not divide by tp times these ranks. `key`: its configuration key.
void check_channels_divide(const std::string& key, int64_t extent, const Mesh& mesh, int64_t context_ranks);

}  // namespace welkin::parallel
