// SPDX-License-Identifier: Apache-2.0
// The segments of a model with a row of blocks: one per block. The first includes the layers before the blocks, the last those
// behind them.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/base/segment.h"

namespace welkin::model {

// Make the first block's input from the model's input, and the model's output from the last block's result.
using BlocksEntry = std::function<at::Tensor(const at::Tensor& input, const ForwardContext& context)>;
using BlocksExit = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& input)>;

// `before` and `behind`: paths of the layers, and names of the parameters, that are used there. The segments hold the blocks.
template <typename Block>
std::vector<Segment> block_segments(const std::vector<std::shared_ptr<Block>>& blocks, const BlocksEntry& enter,
                                    const BlocksExit& leave, const std::vector<std::string>& before,
                                    const std::vector<std::string>& behind) {
  std::vector<Segment> segments;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const bool is_first = i == 0, is_last = i + 1 == blocks.size();
    const auto run = [block = blocks[i], enter, leave, is_first, is_last](Tensors in, const at::Tensor& input,
                                                                          const ForwardContext& context) {
      const at::Tensor x = block->forward(is_first ? enter(input, context) : in.at(0), context);
      return Tensors{is_last ? leave(x, input) : x};
    };
    segments.push_back(
        {.name = blocks[i]->path(), .layers = {blocks[i]->path()}, .run = run, .reads_input = is_first || is_last});
  }
  if (segments.empty()) return segments;
  segments.front().layers.insert(segments.front().layers.end(), before.begin(), before.end());
  segments.back().layers.insert(segments.back().layers.end(), behind.begin(), behind.end());
  return segments;
}

}  // namespace welkin::model
