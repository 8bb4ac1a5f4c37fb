// SPDX-License-Identifier: Apache-2.0
// The segments of a model that is a row of blocks: a segment for each, the first with what comes before the blocks, the last with
// what comes behind.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/base/segment.h"

namespace welkin::model {

// What the first block takes of the input, and the model's output of what the last one leaves.
using BlocksEntry = std::function<at::Tensor(const at::Tensor& input, const ForwardContext& context)>;
using BlocksExit = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& input)>;

// `before` and `behind`: paths of the layers, and names of the parameters, that work there. The segments hold the blocks.
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
