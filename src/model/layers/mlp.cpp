// SPDX-License-Identifier: Apache-2.0
// Bodies of sites capture the context by value: a wrapper may run them again later.
#include "model/layers/mlp.h"

#include <ATen/ops/gelu.h>

namespace welkin::model {
namespace {

Tensors same_features(Tensors in) { return in; }

}  // namespace

Mlp::Mlp(std::string path, const MlpOptions& options)
    : Layer(std::move(path)),
      whole_(this->path()),
      in_(path_of("in")),
      fc1_(add<Linear>("fc1", options.width, options.hidden)),
      fc2_(add<Linear>("fc2", options.hidden, options.width)),
      hidden_drop_(add<Dropout>("hidden_drop", options.dropout)),
      drop_(add<Dropout>("drop", options.dropout)) {}

at::Tensor Mlp::forward(const at::Tensor& x_BND, const ForwardContext& context) const {
  return whole_({x_BND}, [this, context](Tensors in) { return Tensors{expand(in.at(0), context)}; }).at(0);
}

at::Tensor Mlp::expand(const at::Tensor& x_BND, const ForwardContext& context) const {
  const at::Tensor entered = in_({x_BND}, same_features).at(0);
  if (!hidden_drop_->active()) return drop_->forward(fc2_->forward_gelu_of(*fc1_, entered), context);
  const at::Tensor hidden = hidden_drop_->forward(at::gelu(fc1_->forward(entered)), context);
  return drop_->forward(fc2_->forward(hidden), context);
}

}  // namespace welkin::model
