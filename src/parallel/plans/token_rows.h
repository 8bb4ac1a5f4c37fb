// SPDX-License-Identifier: Apache-2.0
// What the plans of models of patches share: over which axes tokens are split, and where the input is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/mesh/mesh.h"
#include "parallel/plans/plan.h"
#include "parallel/plans/vit.h"

namespace welkin::parallel {

struct TokenAxes {
  // Blocks of a field along its height are runs of tokens: what is cut so is split as context parallelism splits it.
  Axis context = Axis::Cp;
  bool is_input_split = false;   // over `context`: a member reads, embeds and scores its own tokens alone
  std::vector<Axis> inner = {};  // those that SplitTokens splits

  int64_t ranks(const Mesh& mesh) const { return mesh.size(context); }
};

// ConfigError when there are fewer tokens than ranks to share them.
TokenAxes token_axes(int64_t num_tokens, const Mesh& mesh, const LayoutOptions& options);

// Where the input is split: the rows of its sites. `with_positions`: the model has a site "positions".
void add_split_input(Plan& plan, const TokenAxes& axes, bool with_positions);

// ConfigError where an extent does not divide by tp times these ranks. `key`: what the user calls it.
void check_channels_divide(const std::string& key, int64_t extent, const Mesh& mesh, int64_t context_ranks);

}  // namespace welkin::parallel
