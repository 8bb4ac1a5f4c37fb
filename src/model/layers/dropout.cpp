// SPDX-License-Identifier: Apache-2.0
// Dropout and drop-path over the counter-based operators.
#include "model/layers/dropout.h"

#include <ostream>

#include "core/philox.h"

namespace welkin::model {

ops::MaskKey mask_key(const Layer& layer, const ForwardContext& context) {
  return {stream_key(context.seed, layer.path()), context.step, context.sample};
}

at::Tensor Dropout::forward(const at::Tensor& x, const ForwardContext& context) const {
  return active() ? ops::philox_dropout(x, rate_, mask_key(*this, context), window(x.sizes())) : x;
}

void Dropout::pretty_print(std::ostream& stream) const { stream << "Dropout(p=" << rate_ << ")"; }

at::Tensor DropPath::forward(const at::Tensor& x, const ForwardContext& context) const {
  const bool active = rate_ > 0.0 && is_training();
  return active ? ops::philox_drop_path(x, rate_, mask_key(*this, context)) : x;
}

void DropPath::pretty_print(std::ostream& stream) const { stream << "DropPath(p=" << rate_ << ")"; }

}  // namespace welkin::model
