// SPDX-License-Identifier: Apache-2.0
#include "model/afno/afno.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "model/base/block_segments.h"
#include "model/base/init.h"

namespace welkin::model {
namespace {

constexpr double kAfnoPosEmbedDeviation = 0.02;

Tensors as_they_are(Tensors in) { return in; }

}  // namespace

Afno::Afno(const AfnoOptions& options)
    : options_(options), positions_("positions"), tokens_in_("tokens.in"), tokens_out_("tokens.out") {
  pos_embed_ = register_parameter("pos_embed", at::empty({1, options.num_tokens(), options.embed_dim}));
  patch_embed_ = add<PatchEmbed>("patch_embed", options.in_channels, options.embed_dim, options.patch);
  pos_drop_ = add<Dropout>("pos_drop", options.dropout);
  blocks_ = add<LayerList<AfnoBlock>>("blocks");
  const double last = static_cast<double>(std::max<int64_t>(1, options.depth - 1));
  for (int64_t i = 0; i < options.depth; ++i) blocks_->append(options, options.dropout * static_cast<double>(i) / last);
  head_ = add<Linear>("head", options.embed_dim, options.patch * options.patch * options.out_channels, /*with_bias=*/false);
}

at::Tensor Afno::embed(const at::Tensor& input, const ForwardContext& context) const {
  const at::Tensor patches_BND = patch_embed_->forward(input);
  const at::Tensor tokens_BND = patches_BND.add(positions_({pos_embed_}, as_they_are).at(0));
  return pos_drop_->forward(tokens_in_({tokens_BND}, as_they_are).at(0), context);
}

at::Tensor Afno::output_of(const at::Tensor& x_BND, const at::Tensor& input) const {
  const at::Tensor patches_BNF = head_->forward(tokens_out_({x_BND}, as_they_are).at(0));
  const int64_t rows = input.size(2) / options_.patch;  // of the given part of the field
  const at::Tensor output = unpatchify(patches_BNF, rows, options_.patch);
  return options_.residual ? add_newest(output, input, options_.newest_input_channel, options_.residual_runs) : output;
}

at::Tensor Afno::forward(const at::Tensor& input, const ForwardContext& context) {
  at::Tensor x_BND = embed(input, context);
  for (const auto& block : blocks_->layers()) x_BND = block->forward(x_BND, context);
  return output_of(x_BND, input);
}

std::vector<Site*> Afno::sites() {
  std::vector<Site*> sites = patch_embed_->sites();
  sites.insert(sites.end(), {&positions_, &tokens_in_});
  const std::vector<Site*> blocks = blocks_->sites();
  sites.insert(sites.end(), blocks.begin(), blocks.end());
  sites.push_back(&tokens_out_);
  sites.push_back(head_->sites().at(0));
  return sites;
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
