// SPDX-License-Identifier: Apache-2.0
// Attention and its block. Bodies of sites capture the context by value: a wrapper may run them again later.
#include "model/vit/vit_block.h"

#include <ATen/ops/full.h>

#include "ops/attention/attention.h"
#include "ops/norm/residual_sum.h"

namespace welkin::model {
namespace {

Tensors pass_through(Tensors in) { return in; }

// A wrapper that replaces the body of "core" makes the masks itself: step, sample and stream follow q, k and v.
void add_mask_key(Tensors& heads, const ops::MaskKey& key) {
  const at::Tensor stream = at::full({1}, static_cast<int64_t>(key.stream), at::kLong);
  heads.insert(heads.end(), {key.step, key.sample, stream});
}

}  // namespace

Attention::Attention(std::string path, const VitBlockOptions& options)
    : Layer(std::move(path)),
      head_dim_(options.width / options.num_heads),
      whole_(this->path()),
      in_(path_of("in")),
      core_(path_of("core")) {
  if (options.qkv == QkvLayout::Joint) {
    qkv_ = add<Linear>("qkv", options.width, 3 * options.width);
  } else {
    q_ = add<Linear>("q", options.width, options.width);
    k_ = add<Linear>("k", options.width, options.width);
    v_ = add<Linear>("v", options.width, options.width);
  }
  weights_drop_ = add<Dropout>("attn_drop", options.dropout);
  proj_ = add<Linear>("proj", options.width, options.width);
  proj_drop_ = add<Dropout>("proj_drop", options.dropout);
}

at::Tensor Attention::forward(const at::Tensor& x_BND, const ForwardContext& context) const {
  return whole_({x_BND}, [this, context](Tensors in) { return Tensors{attend(in.at(0), context)}; }).at(0);
}

at::Tensor Attention::attend(const at::Tensor& x_BND, const ForwardContext& context) const {
  const Tensors qkv = project(in_({x_BND}, pass_through).at(0));
  Tensors heads{split_heads(qkv.at(0)), split_heads(qkv.at(1)), split_heads(qkv.at(2))};
  if (!core_.is_unwrapped() && weights_drop_->active()) add_mask_key(heads, mask_key(*weights_drop_, context));
  const Tensors mixed = core_(std::move(heads), [this, context](Tensors in) { return weigh(in, context); });
  const at::Tensor merged_BND = mixed.at(0).transpose(1, 2).flatten(2);
  return proj_drop_->forward(proj_->forward(merged_BND), context);
}

Tensors Attention::project(const at::Tensor& x_BND) const {
  if (qkv_) return qkv_->forward(x_BND).chunk(3, -1);
  return Linear::forward_together({q_.get(), k_.get(), v_.get()}, x_BND);
}

at::Tensor Attention::split_heads(const at::Tensor& x_BND) const {
  return x_BND.unflatten(-1, {x_BND.size(-1) / head_dim_, head_dim_}).transpose(1, 2);
}

Tensors Attention::weigh(const Tensors& qkv, const ForwardContext& context) const {
  if (!weights_drop_->active()) return {ops::attention(qkv.at(0), qkv.at(1), qkv.at(2))};
  const at::Tensor& q = qkv.at(0);
  const at::Tensor& k = qkv.at(1);
  return {ops::attention_with_dropout(q, k, qkv.at(2), weights_drop_->rate(), mask_key(*weights_drop_, context),
                                      weights_drop_->window({q.size(0), q.size(1), q.size(2), k.size(2)}))};
}

std::vector<Site*> Attention::sites() {
  std::vector<Site*> sites{&whole_, &in_};
  for (const auto& linear : {qkv_, q_, k_, v_}) {
    if (linear) sites.push_back(linear->sites().at(0));
  }
  sites.push_back(&core_);
  sites.push_back(proj_->sites().at(0));
  return sites;
}

VitBlock::VitBlock(std::string path, const VitBlockOptions& options) : Layer(std::move(path)), whole_(this->path()) {
  if (options.qkv == QkvLayout::Joint) attn_ = add<Attention>("attn", options);  // comes before the norms, as in SC23's files
  norm1_ = add<LayerNorm>("norm1", options.width);
  norm2_ = add<LayerNorm>("norm2", options.width);
  if (options.qkv == QkvLayout::Separate) attn_ = add<Attention>("attn", options);
  mlp_ = add<Mlp>("mlp", MlpOptions{.width = options.width, .hidden = options.mlp_width, .dropout = options.dropout});
  attn_path_ = add<DropPath>("attn_path", options.drop_path);
  mlp_path_ = add<DropPath>("mlp_path", options.drop_path);
}

at::Tensor VitBlock::forward(const at::Tensor& x_BND, const ForwardContext& context) const {
  return whole_({x_BND}, [this, context](Tensors in) { return Tensors{transform(in.at(0), context)}; }).at(0);
}

at::Tensor VitBlock::transform(const at::Tensor& x_BND, const ForwardContext& context) const {
  const at::Tensor attended = attn_->forward(norm1_->forward(x_BND), context);
  const ops::ResidualNorm middle_BND = norm2_->of_sum(x_BND, attn_path_->forward(attended, context));
  const at::Tensor expanded = mlp_->forward(middle_BND.normed, context);
  return ops::residual_sum(middle_BND.sum, mlp_path_->forward(expanded, context));
}

std::vector<Site*> VitBlock::sites() {
  std::vector<Site*> sites{&whole_};
  for (Layer* layer : std::initializer_list<Layer*>{norm1_.get(), attn_.get(), norm2_.get(), mlp_.get()}) {
    const std::vector<Site*> more = layer->sites();
    sites.insert(sites.end(), more.begin(), more.end());
  }
  return sites;
}

}  // namespace welkin::model
