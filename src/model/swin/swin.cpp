// SPDX-License-Identifier: Apache-2.0
#include "model/swin/swin.h"

#include "model/base/block_segments.h"

namespace welkin::model {
namespace {

Tensors the_same(Tensors in) { return in; }

}  // namespace

Swin::Swin(const SwinOptions& options) : options_(options), tokens_in_("tokens.in"), tokens_out_("tokens.out") {
  patch_embed_ = add<PatchEmbed>("patch_embed", options.in_channels, options.embed_dim, options.patch);
  blocks_ = add<LayerList<SwinBlock>>("blocks");
  for (int64_t i = 0; i < options.depth; ++i) blocks_->append(options, i);
  norm_ = add<LayerNorm>("norm", options.embed_dim);
  head_ = add<Linear>("head", options.embed_dim, options.patch * options.patch * options.out_channels, /*with_bias=*/false);
}

at::Tensor Swin::embed(const at::Tensor& input) const { return tokens_in_({patch_embed_->forward(input)}, the_same).at(0); }

at::Tensor Swin::output_of(const at::Tensor& x_BND, const at::Tensor& input) const {
  const at::Tensor out_BND = tokens_out_({norm_->forward(x_BND)}, the_same).at(0);
  const at::Tensor patches_BNF = head_->forward(out_BND);
  const int64_t rows = input.size(2) / options_.patch;  // of the given part of the field
  const at::Tensor output = unpatchify(patches_BNF, rows, options_.patch);
  return options_.residual ? add_newest(output, input, options_.newest_input_channel, options_.residual_runs) : output;
}

at::Tensor Swin::forward(const at::Tensor& input, const ForwardContext& context) {
  at::Tensor x_BND = embed(input);
  for (const auto& block : blocks_->layers()) x_BND = block->forward(x_BND, context);
  return output_of(x_BND, input);
}

std::vector<Site*> Swin::sites() {
  std::vector<Site*> sites = patch_embed_->sites();
  sites.push_back(&tokens_in_);
  for (Layer* layer : std::initializer_list<Layer*>{blocks_.get(), norm_.get()}) {
    const std::vector<Site*> more = layer->sites();
    sites.insert(sites.end(), more.begin(), more.end());
  }
  sites.push_back(&tokens_out_);
  sites.push_back(head_->sites().at(0));
  return sites;
}

std::vector<Segment> Swin::segments() {
  const auto enter = [this](const at::Tensor& input, const ForwardContext& /*context*/) { return embed(input); };
  const auto leave = [this](const at::Tensor& x, const at::Tensor& input) { return output_of(x, input); };
  return block_segments(blocks_->layers(), enter, leave, {"patch_embed"}, {"norm", "head"});
}

}  // namespace welkin::model
