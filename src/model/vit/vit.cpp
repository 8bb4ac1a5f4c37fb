// SPDX-License-Identifier: Apache-2.0
// The vision transformer from its layers.
#include "model/vit/vit.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "model/base/block_segments.h"
#include "model/base/init.h"

namespace welkin::model {
namespace {

constexpr double kPosEmbedDeviation = 0.02;

VitBlockOptions block_options(const VitOptions& options, int64_t index) {
  const double last = static_cast<double>(std::max<int64_t>(1, options.depth - 1));
  return {.width = options.embed_dim,
          .num_heads = options.num_heads,
          .mlp_width = options.mlp_width,
          .qkv = options.joint_qkv ? QkvLayout::Joint : QkvLayout::Separate,
          .dropout = options.dropout,
          .drop_path = options.dropout * static_cast<double>(index) / last};
}

Tensors same_tokens(Tensors in) { return in; }

}  // namespace

Vit::Vit(const VitOptions& options)
    : options_(options), positions_("positions"), tokens_in_("tokens.in"), tokens_out_("tokens.out") {
  pos_embed_ = register_parameter("pos_embed", at::empty({1, options.num_tokens(), options.embed_dim}));
  patch_embed_ = add<PatchEmbed>("patch_embed", options.in_channels, options.embed_dim, options.patch);
  pos_drop_ = add<Dropout>("pos_drop", options.dropout);
  blocks_ = add<LayerList<VitBlock>>("blocks");
  for (int64_t i = 0; i < options.depth; ++i) blocks_->append(block_options(options, i));
  norm_ = add<LayerNorm>("norm", options.embed_dim);
  head_ = add<Linear>("head", options.embed_dim, options.patch * options.patch * options.out_channels, /*with_bias=*/false);
}

at::Tensor Vit::embed(const at::Tensor& input, const ForwardContext& context) const {
  const at::Tensor patches_BND = patch_embed_->forward(input);
  const at::Tensor tokens_BND = patches_BND.add(positions_({pos_embed_}, same_tokens).at(0));
  return pos_drop_->forward(tokens_in_({tokens_BND}, same_tokens).at(0), context);
}

at::Tensor Vit::forward(const at::Tensor& input, const ForwardContext& context) {
  at::Tensor x_BND = embed(input, context);
  for (const auto& block : blocks_->layers()) x_BND = block->forward(x_BND, context);
  return output_of(x_BND, input);
}

at::Tensor Vit::output_of(const at::Tensor& x_BND, const at::Tensor& input) const {
  const at::Tensor out_BND = tokens_out_({norm_->forward(x_BND)}, same_tokens).at(0);
  at::Tensor patches_BNF = head_->forward(out_BND);
  const int64_t rows = input.size(2) / options_.patch;  // of the given part of the field
  at::Tensor output = unpatchify(patches_BNF, rows, options_.patch);
  return options_.residual ? add_newest(output, input, options_.newest_input_channel, options_.residual_runs) : output;
}

std::vector<Segment> Vit::segments() {
  const auto enter = [this](const at::Tensor& input, const ForwardContext& context) { return embed(input, context); };
  const auto leave = [this](const at::Tensor& x, const at::Tensor& input) { return output_of(x, input); };
  return block_segments(blocks_->layers(), enter, leave, {"pos_embed", "patch_embed"}, {"norm", "head"});
}

void Vit::initialise(uint64_t seed) {
  fill_normal(pos_embed_, seed, "pos_embed", kPosEmbedDeviation);
  Model::initialise(seed);
}

std::vector<Site*> Vit::sites() {
  std::vector<Site*> sites = patch_embed_->sites();
  const std::vector<Site*> blocks = blocks_->sites();
  const std::vector<Site*> norm = norm_->sites();
  const std::vector<Site*> head = head_->sites();
  sites.insert(sites.end(), {&positions_, &tokens_in_});
  sites.insert(sites.end(), blocks.begin(), blocks.end());
  sites.insert(sites.end(), norm.begin(), norm.end());
  sites.push_back(&tokens_out_);
  sites.insert(sites.end(), head.begin(), head.end());
  return sites;
}

}  // namespace welkin::model
