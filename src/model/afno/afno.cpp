// SPDX-License-Identifier: Apache-2.0
#include "model/afno/afno.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "model/base/block_segments.h"
#include "model/base/init.h"

namespace welkin::model {
namespace {

constexpr double kAfnoPosEmbedDeviation = 0.02;

}  // namespace

Afno::Afno(const AfnoOptions& options) : options_(options) {
  pos_embed_ = register_parameter("pos_embed", at::empty({1, options.num_tokens(), options.embed_dim}));
  patch_embed_ = add<PatchEmbed>("patch_embed", options.in_channels, options.embed_dim, options.patch);
  pos_drop_ = add<Dropout>("pos_drop", options.dropout);
  blocks_ = add<LayerList<AfnoBlock>>("blocks");
  const double last = static_cast<double>(std::max<int64_t>(1, options.depth - 1));
  for (int64_t i = 0; i < options.depth; ++i) blocks_->append(options, options.dropout * static_cast<double>(i) / last);
  head_ = add<Linear>("head", options.embed_dim, options.patch * options.patch * options.out_channels, /*with_bias=*/false);
}

at::Tensor Afno::embed(const at::Tensor& input, const ForwardContext& context) const {
  return pos_drop_->forward(patch_embed_->forward(input).add(pos_embed_), context);
}

at::Tensor Afno::output_of(const at::Tensor& x_BND, const at::Tensor& input) const {
  const at::Tensor output = unpatchify(head_->forward(x_BND), options_.rows(), options_.patch);
  return options_.residual ? add_newest(output, input, options_.newest_input_channel, options_.residual_runs) : output;
}

at::Tensor Afno::forward(const at::Tensor& input, const ForwardContext& context) {
  at::Tensor x_BND = embed(input, context);
  for (const auto& block : blocks_->layers()) x_BND = block->forward(x_BND, context);
  return output_of(x_BND, input);
}

std::vector<Segment> Afno::segments() {
  const auto enter = [this](const at::Tensor& input, const ForwardContext& context) { return embed(input, context); };
  const auto leave = [this](const at::Tensor& x, const at::Tensor& input) { return output_of(x, input); };
  return block_segments(blocks_->layers(), enter, leave, {"pos_embed", "patch_embed"}, {"head"});
}

void Afno::initialise(uint64_t seed) {
  fill_normal(pos_embed_, seed, "pos_embed", kAfnoPosEmbedDeviation);
  Model::initialise(seed);
}

}  // namespace welkin::model
