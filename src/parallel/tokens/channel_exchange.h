// SPDX-License-Identifier: Apache-2.0
// Exchanges own tokens of all channels for all tokens of own channels, and back: one all-to-all each, as Ulysses does with
// heads (Jacobs et al. 2023, arXiv:2309.14509).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "parallel/tokens/token_split.h"

namespace welkin::parallel {

// (B, own tokens, parts x C) -> (B, tokens of the level, parts x C / ranks). The features are `parts` blocks of all channels. C
// divides by the ranks. Differentiable.
at::Tensor channels_of_all_tokens(const TokenSplit::Level& level, const at::Tensor& x_BNF, int64_t parts = 1);

// (B, tokens of the level, C / ranks) -> (B, own tokens, C).
at::Tensor tokens_of_all_channels(const TokenSplit::Level& level, const at::Tensor& x_BNC);

}  // namespace welkin::parallel
